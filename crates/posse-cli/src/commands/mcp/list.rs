//! `posse mcp list`.

use std::process::ExitCode;

use super::{LocalServers, why};
use crate::definitions::shown;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, say_to_person, tame, width};
use crate::present::servers;

const COLUMNS: [Column; 5] = [
    needed("NAME"),
    needed("STATE"),
    spare("SOURCE", 1),
    spare("DECLARED IN", 2),
    needed("RUNS"),
];

/// List the MCP servers that are declared here: those that count by name, then those overridden.
///
/// A server of the repository waits until you accept it with `posse trust`.
#[derive(clap::Args)]
pub(super) struct ListServers {
    /// Print one JSON object per server
    #[arg(long)]
    json: bool,
}

impl ListServers {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let here = LocalServers::here()?;
        here.tell();
        if self.json {
            for (server, standing) in here.all() {
                let object = servers::object(server, standing.word(), why(server));
                print(json_line(&object).as_bytes())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let rows = here.all().map(|(server, standing)| {
            let line = server.origin.line.map(|line| format!(":{line}"));
            let file = shown(&server.origin.file, &here.cwd);
            vec![
                tame(&server.name),
                standing.word().to_owned(),
                server.origin.source.as_str().to_owned(),
                file + &line.unwrap_or_default(),
                tame(&server.title()),
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        if rows.is_empty() {
            say_to_person("no MCP servers are declared here; `posse mcp add` declares one");
            return Ok(ExitCode::SUCCESS);
        }
        print(table(&COLUMNS, &rows, width()).as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
