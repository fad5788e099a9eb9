//! `posse mcp call`.

use std::process::ExitCode;
use std::sync::Arc;

use posse_port::servers::{NoAsker, Server, ServerAnswer, ServerCall, ServerFailure};
use posse_port::tool::LiveOutput;
use posse_protocol::{AgentId, RawJson};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::reach::ReachedServers;
use super::{LocalServers, ServerStanding, why};
use crate::config::caller;
use crate::error::{Advised, FAILED};
use crate::output::{json_line, print, print_exactly, tame};
use crate::present::entries;

/// Call a tool of an MCP server that is declared here, and print what it answers.
///
/// Exits with 1 if the tool says that it has failed.
#[derive(clap::Args)]
pub(super) struct CallServer {
    /// Name of the server
    server: String,
    /// Name of the tool, as the server has it: `posse mcp check --json` lists them
    tool: String,
    /// Its input, a JSON object
    #[arg(value_name = "JSON", default_value = "{}", value_parser = input)]
    input: Map<String, Value>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn input(text: &str) -> Result<Map<String, Value>, serde_json::Error> {
    serde_json::from_str(text)
}

impl CallServer {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        caller::only_a_person_can("call tools of MCP servers")?;
        let here = LocalServers::here()?;
        let found = here.named(&self.server)?;
        let active = found.iter().find(|(_, it)| *it == ServerStanding::Active);
        let Some((declared, _)) = active else {
            let why = found.iter().find_map(|(server, _)| why(server));
            anyhow::bail!(Advised {
                what: format!("the MCP server {} is not started", tame(&self.server)),
                advice: tame(why.unwrap_or_default()),
            });
        };
        let reached = ReachedServers::new(&here)?;
        let called = crate::config::runtime()?.block_on(async {
            let called = self.call(&*reached.connect(declared)).await;
            reached.end().await;
            called
        });
        let answer = called?;
        match self.json {
            true => {
                let object = json!({
                    "content": answer.content, "structured": answer.structured,
                    "is_error": answer.is_error,
                });
                print(json_line(&object).as_bytes())?;
            }
            false => print_exactly(&entries::plain_answer(&answer.content))?,
        }
        Ok(match answer.is_error {
            true => ExitCode::from(FAILED),
            false => ExitCode::SUCCESS,
        })
    }

    async fn call(&self, server: &dyn Server) -> Result<ServerAnswer, ServerFailure> {
        let input = Value::Object(self.input.clone()).to_string();
        let call = ServerCall {
            tool: self.tool.clone(),
            input: RawJson::parse(&input).unwrap_or_else(|_| RawJson::empty_object()),
            session: AgentId::from(Uuid::nil()),
            path: "/main".into(),
            asker: Arc::new(NoAsker),
            output: LiveOutput::default(),
            overflow: None,
            cancel: CancellationToken::new(),
        };
        server.call(call).await
    }
}
