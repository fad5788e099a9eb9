//! `posse mcp check`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::servers::{Server, ServerState};
use posse_runtime::definition::server::DeclaredServer;
use serde_json::json;
use tokio::task::JoinSet;

use super::reach::ReachedServers;
use super::{LocalServers, ServerStanding, why};
use crate::config::caller;
use crate::error::FAILED;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, say, say_to_person, tame, width};
use crate::present::servers;

const COLUMNS: [Column; 4] = [
    needed("NAME"),
    needed("STATE"),
    spare("TOOLS", 1),
    needed("TOOK"),
];

/// Connect with the MCP servers that are declared here, as a session would, and say what they have.
///
/// Servers that wait or are refused are not started. Exits with 1 if one cannot be connected.
#[derive(clap::Args)]
pub(super) struct CheckServers {
    /// Name of a server; all if absent
    name: Option<String>,
    /// Print one JSON object per server
    #[arg(long)]
    json: bool,
}

/// What became of a server.
struct CheckedServer<'a> {
    declared: &'a DeclaredServer,
    /// None if it may not be started.
    state: Option<ServerState>,
    took: Duration,
}

impl CheckServers {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        caller::only_a_person_can("start MCP servers")?;
        let here = LocalServers::here()?;
        here.tell();
        let meant = match &self.name {
            Some(name) => here.named(name)?,
            None => here.all().collect(),
        };
        let meant = meant.into_iter();
        let meant = meant.filter(|(_, standing)| *standing != ServerStanding::Overridden);
        let meant: Vec<&DeclaredServer> = meant.map(|(server, _)| server).collect();
        if meant.is_empty() && !self.json {
            say_to_person("no MCP servers are declared here; `posse mcp add` declares one");
        }
        let reached = ReachedServers::new(&here)?;
        let checked = crate::config::runtime()?.block_on(check(reached, &meant));
        match self.json {
            true => {
                for it in &checked {
                    print(json_line(&it.object()).as_bytes())?;
                }
            }
            false => {
                let rows: Vec<Vec<String>> = checked.iter().map(CheckedServer::row).collect();
                if !rows.is_empty() {
                    print(table(&COLUMNS, &rows, width()).as_bytes())?;
                }
                for it in &checked {
                    if let Some(why) = it.why() {
                        say(&tame(&format!("{}: {why}", it.declared.name)));
                    }
                }
            }
        }
        let is_failed =
            |it: &CheckedServer<'_>| matches!(it.state, Some(ServerState::Failed { .. }));
        Ok(match checked.iter().any(is_failed) {
            true => ExitCode::from(FAILED),
            false => ExitCode::SUCCESS,
        })
    }
}

/// Connects with all of them side by side, and ends them.
async fn check<'a>(
    reached: ReachedServers<'_>,
    meant: &[&'a DeclaredServer],
) -> Vec<CheckedServer<'a>> {
    let begun = Instant::now();
    let mut waits = JoinSet::new();
    for (at, declared) in meant.iter().enumerate() {
        if declared.is_admitted() {
            let server: Arc<dyn Server> = reached.connect(declared);
            waits.spawn(async move {
                server.settled().await;
                (at, server.state(), begun.elapsed())
            });
        }
    }
    let mut checked: Vec<CheckedServer<'a>> = meant
        .iter()
        .map(|declared| CheckedServer {
            declared,
            state: None,
            took: Duration::ZERO,
        })
        .collect();
    while let Some(waited) = waits.join_next().await {
        if let Ok((at, state, took)) = waited
            && let Some(it) = checked.get_mut(at)
        {
            (it.state, it.took) = (Some(state), took);
        }
    }
    reached.end().await;
    checked
}

impl CheckedServer<'_> {
    fn word(&self) -> &'static str {
        match &self.state {
            // It has settled, so that it is not being connected any more.
            Some(ServerState::Pending) => "failed",
            Some(state) => state.as_str(),
            None => "not started",
        }
    }

    fn why(&self) -> Option<&str> {
        match &self.state {
            Some(ServerState::Failed { why, .. }) => Some(why),
            Some(_) => None,
            None => why(self.declared),
        }
    }

    fn tools(&self) -> Vec<&str> {
        let facts = match &self.state {
            Some(ServerState::Connected(facts)) => facts,
            _ => return Vec::new(),
        };
        facts.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    fn row(&self) -> Vec<String> {
        let tools = self.tools();
        let is_connected = matches!(self.state, Some(ServerState::Connected(_)));
        let (count, took) = match is_connected {
            true => (
                tools.len().to_string(),
                format!("{} ms", self.took.as_millis()),
            ),
            false => Default::default(),
        };
        vec![tame(&self.declared.name), self.word().into(), count, took]
    }

    fn object(&self) -> serde_json::Value {
        let mut object = servers::object(self.declared, self.word(), self.why());
        object["tools"] = json!(self.tools());
        object["took_ms"] = json!(self.took.as_millis());
        object
    }
}
