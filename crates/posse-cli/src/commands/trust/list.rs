//! `posse trust list`.

use std::process::ExitCode;

use serde_json::json;

use crate::config::environment;
use crate::config::trust::record::{TrustFile, TrustedWorkspace};
use crate::config::trust::workspace::WorkspaceKey;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, say_to_person, tame, width};

const COLUMNS: [Column; 4] = [
    needed("STATE"),
    spare("SINCE", 1),
    spare("FILES", 2).right(),
    needed("WORKSPACE"),
];

/// List trusted workspaces.
#[derive(clap::Args)]
pub(super) struct ListTrusted {
    /// Print one JSON object per workspace
    #[arg(long)]
    json: bool,
}

impl ListTrusted {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Some(posse_home) = environment::posse_home() else {
            return Ok(ExitCode::SUCCESS);
        };
        let record = TrustFile::read(&posse_home, environment::home().as_deref())?;
        if self.json {
            for it in &record.workspaces {
                let object = json!({
                    "workspace": it.path, "state": state(&record, it), "since": it.since,
                    "files": it.files.keys().collect::<Vec<_>>(),
                });
                print(json_line(&object).as_bytes())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        if record.workspaces.is_empty() {
            say_to_person("no workspace is trusted; `posse trust` asks about this one");
            return Ok(ExitCode::SUCCESS);
        }
        let row = |it: &TrustedWorkspace| {
            vec![
                state(&record, it).to_owned(),
                tame(&it.since),
                it.files.len().to_string(),
                tame(&it.path.to_string_lossy()),
            ]
        };
        let rows: Vec<Vec<String>> = record.workspaces.iter().map(row).collect();
        print(table(&COLUMNS, &rows, width()).as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns what became of a workspace: `trusted`, `replaced` by another directory, or `gone`.
fn state(record: &TrustFile, workspace: &TrustedWorkspace) -> &'static str {
    match WorkspaceKey::around(&workspace.path) {
        Some(key) if record.was_replaced(&key) => "replaced",
        Some(key) if key.path == workspace.path => "trusted",
        _ => "gone",
    }
}
