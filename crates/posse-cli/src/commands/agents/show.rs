//! `posse agents show`.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::describe;
use crate::definitions::{AgentSources, DefinitionEntry};
use crate::output::{json_line, print, tame};
use crate::present::definitions;

/// Show an agent type: its source, its permissions and its prompt.
#[derive(clap::Args)]
pub(super) struct ShowAgent {
    /// Its name, in upper or lower case
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ShowAgent {
    pub(super) fn run(self, sources: &AgentSources) -> anyhow::Result<ExitCode> {
        let loaded = sources.load();
        let Some(known) = loaded.find(&self.name) else {
            anyhow::bail!(definitions::unknown(
                &loaded,
                "agents",
                "agent type",
                &self.name
            ))
        };
        let shadows = loaded.shadowed_by_name(&self.name);
        let shown = if self.json {
            let mut object = describe::whole(known);
            let places: Vec<String> = shadows
                .iter()
                .map(|other| other.origin(Path::new("")))
                .collect();
            object["shadows"] = json!(places);
            json_line(&object)
        } else {
            readable(known, &shadows, sources.cwd())
        };
        print(shown.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the description for people.
fn readable(known: &DefinitionEntry, shadows: &[&DefinitionEntry], cwd: &Path) -> String {
    let it = &known.definition;
    let mut out = format!(
        "\x1b[1m{}\x1b[0m\n{}\n\n",
        tame(&it.name),
        tame(it.description.trim())
    );
    let mut line = |name: &str, value: &str| out.push_str(&format!("{name:<19} {value}\n"));
    let from = match &known.path {
        Some(_) => format!("{}: {}", known.source.as_str(), known.origin(cwd)),
        None => known.source.as_str().to_owned(),
    };
    line("from", &from);
    for other in shadows {
        line("shadows", &other.origin(cwd));
    }
    for (name, value) in describe::fields(it) {
        line(name, &tame(&value));
    }
    let prompt = it.prompt.trim();
    if !prompt.is_empty() {
        out.push_str(&format!("\n{}\n", tame(prompt)));
    }
    out
}
