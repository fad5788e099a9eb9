//! `posse skills list`.

use std::path::Path;
use std::process::ExitCode;

use posse_runtime::definition::skill::Skill;
use serde_json::json;

use super::show;
use crate::definitions::DefinitionEntry;
use crate::definitions::skills::SkillSources;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, tame, width};
use crate::present::definitions;

/// Columns of the table.
const COLUMNS: [Column; 4] = [
    needed("NAME"),
    spare("SOURCE", 1),
    spare("FOR", 2),
    needed("DESCRIPTION"),
];

/// List the skills and commands that can be called here.
#[derive(clap::Args)]
pub(super) struct ListSkills {
    /// Include those overridden by another of the same name
    #[arg(long)]
    all: bool,
    /// Print one JSON object per skill
    #[arg(long)]
    json: bool,
}

impl ListSkills {
    pub(super) fn run(self, sources: &SkillSources) -> anyhow::Result<ExitCode> {
        let loaded = sources.load();
        let shown: Vec<&DefinitionEntry<Skill>> = loaded
            .known
            .iter()
            .chain(loaded.shadowed.iter().filter(|_| self.all))
            .collect();
        if self.json {
            for known in shown {
                let mut object = show::object(known);
                object["shadowed_by"] = json!(
                    loaded
                        .winner(known)
                        .map(|winner| winner.origin(Path::new("")))
                );
                print(json_line(&object).as_bytes())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let row = |known: &&DefinitionEntry<Skill>| {
            let it = &known.definition;
            let description = it
                .description
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let shadowed = loaded
                .winner(known)
                .map(|winner| winner.origin(sources.cwd()));
            let behind = shadowed
                .map(|by| format!("(behind {by}) "))
                .unwrap_or_default();
            let source = known.source.as_str().to_owned();
            vec![
                tame(&it.name),
                source,
                show::callers(it).to_owned(),
                behind + &tame(&description),
            ]
        };
        let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
        print(table(&COLUMNS, &rows, width()).as_bytes())?;
        definitions::tell_of_trouble(&loaded, "skills");
        Ok(ExitCode::SUCCESS)
    }
}
