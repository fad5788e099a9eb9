//! `posse mcp get`.

use std::process::ExitCode;

use posse_runtime::definition::server::DeclaredServer;

use super::{LocalServers, ServerScope, ServerStanding, why};
use crate::definitions::shown;
use crate::output::{json_line, print, tame};
use crate::present::servers;

/// Show an MCP server, and others of its name that it overrides.
///
/// Values of variables and headers whose names tell of a secret are not shown.
#[derive(clap::Args)]
pub(super) struct GetServer {
    /// Name of the server
    name: String,
    /// Print one JSON object per entry
    #[arg(long)]
    json: bool,
}

impl GetServer {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let here = LocalServers::here()?;
        let found = here.named(&self.name)?;
        for (server, standing) in &found {
            let text = match self.json {
                true => {
                    let mut object = servers::object(server, standing.word(), why(server));
                    object["entry"] = servers::entry(server);
                    json_line(&object)
                }
                false => described(server, *standing, &here),
            };
            print(text.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn described(server: &DeclaredServer, standing: ServerStanding, here: &LocalServers) -> String {
    let why = why(server).map(|why| format!(": {why}"));
    let line = server.origin.line.map(|line| format!(":{line}"));
    let file = shown(&server.origin.file, &here.cwd) + &line.unwrap_or_default();
    let mut lines = vec![
        format!("{} ({})", server.name, server.origin.source.as_str()),
        format!("  state    {}{}", standing.word(), why.unwrap_or_default()),
        format!("  declared {file}"),
    ];
    lines.extend(
        servers::fields(server)
            .into_iter()
            .map(|(name, value)| format!("  {name:<8} {value}")),
    );
    if let Some(scope) = ServerScope::of(server) {
        let scope = scope.word();
        let name = &server.name;
        lines.push(format!(
            "  remove with `posse mcp remove {name} --scope {scope}`"
        ));
    }
    let lines = lines.iter().map(|line| tame(line) + "\n");
    lines.collect()
}
