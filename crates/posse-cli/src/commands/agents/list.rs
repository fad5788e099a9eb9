//! `posse agents list`.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::describe;
use crate::definitions::{AgentSources, DefinitionEntry, DefinitionSet};
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, tame, width};
use crate::present::definitions;

/// Columns of the table.
const COLUMNS: [Column; 5] = [
    needed("NAME"),
    spare("SOURCE", 1),
    spare("MODEL", 2),
    spare("TOOLS", 3),
    needed("DESCRIPTION"),
];

/// Extra column with `--all`.
const SHADOWED: Column = needed("SHADOWED BY");

/// List the agent types that can be started here.
#[derive(clap::Args)]
pub(super) struct ListAgents {
    /// Include those overridden by another of the same name
    #[arg(long)]
    all: bool,
    /// Print one JSON object per type
    #[arg(long)]
    json: bool,
}

impl ListAgents {
    pub(super) fn run(self, sources: &AgentSources) -> anyhow::Result<ExitCode> {
        let loaded = sources.load();
        let shadowed = loaded.shadowed.iter().filter(|_| self.all);
        if self.json {
            for known in loaded.known.iter().chain(shadowed) {
                let mut object = describe::object(known);
                object["shadowed_by"] = json!(
                    loaded
                        .winner(known)
                        .map(|known| known.origin(Path::new("")))
                );
                print(json_line(&object).as_bytes())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let shown: Vec<&DefinitionEntry> = loaded.known.iter().chain(shadowed).collect();
        print(readable(&loaded, &shown, sources.cwd(), self.all, width()).as_bytes())?;
        definitions::tell_of_trouble(&loaded, "agents");
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the table for people.
fn readable(
    loaded: &DefinitionSet,
    shown: &[&DefinitionEntry],
    cwd: &Path,
    all: bool,
    columns: Option<usize>,
) -> String {
    let row = |known: &&DefinitionEntry| {
        let it = &known.definition;
        let tools = it
            .tools
            .as_ref()
            .map_or_else(|| "all".into(), |tools| tools.join(" "));
        let description = it
            .description
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let mut row = vec![
            tame(&it.name),
            known.source.as_str().to_owned(),
            tame(it.model.as_deref().unwrap_or("inherit")),
            tame(&tools),
            tame(&description),
        ];
        if all {
            let by = loaded
                .winner(known)
                .map_or_else(|| "–".to_owned(), |winner| winner.origin(cwd));
            row.insert(4, by);
        }
        row
    };
    let mut titles = COLUMNS.to_vec();
    if all {
        titles.insert(4, SHADOWED);
    }
    table(&titles, &shown.iter().map(row).collect::<Vec<_>>(), columns)
}
