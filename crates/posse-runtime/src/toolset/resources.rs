//! The tools that list and read resources of servers.

use std::borrow::Cow;
use std::sync::Arc;

use posse_port::BoxFuture;
use posse_port::servers::Server;
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};
use posse_protocol::ToolContent;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::definition::tool_name::{LIST_RESOURCES, READ_RESOURCE};
use crate::prompt;
use crate::toolset::Caller;
use crate::toolset::watch::tell;

/// Lists resources.
pub(super) struct ListResources(pub(super) Caller);

/// Input of ListMcpResourcesTool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListResourcesInput {
    /// A server's name; all servers if absent.
    server: Option<String>,
}

/// Reads a resource.
pub(super) struct ReadResource(pub(super) Caller);

/// Input of ReadMcpResourceTool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadResourceInput {
    /// The server's name.
    server: String,
    /// The resource's address.
    uri: String,
}

impl TypedTool for ListResources {
    type Input = ListResourcesInput;

    const NAME: &'static str = LIST_RESOURCES;

    fn description(&self) -> Cow<'static, str> {
        format!("Lists resources of servers: what {READ_RESOURCE} can read.").into()
    }

    fn intent(&self, input: &ListResourcesInput, _: &Workspace) -> Result<Intent, ToolError> {
        let of = input.server.as_deref().unwrap_or("all servers");
        Ok(reads(format!("list resources of {}", text::summary(of))))
    }

    async fn run(
        &self,
        input: ListResourcesInput,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let mut asked = Vec::new();
        for UsableServer { name, server } in servers(&self.0)? {
            if input.server.as_ref().is_none_or(|wanted| *wanted == name) {
                asked.push((name, server.list_resources()));
            }
        }
        if let (Some(name), []) = (&input.server, &asked[..]) {
            return Err(unknown(&self.0, name));
        }
        let mut listed = Vec::new();
        for (name, asked) in asked {
            listed.push((name, unless_stopped(&context, asked).await?));
        }
        Ok(told(vec![ToolContent::text(prompt::served::resources(
            &listed,
        ))]))
    }
}

impl TypedTool for ReadResource {
    type Input = ReadResourceInput;

    const NAME: &'static str = READ_RESOURCE;

    fn description(&self) -> Cow<'static, str> {
        "Reads a resource of a server.".into()
    }

    fn intent(&self, input: &ReadResourceInput, _: &Workspace) -> Result<Intent, ToolError> {
        let (server, uri) = (text::summary(&input.server), text::summary(&input.uri));
        Ok(reads(format!("read {uri} of {server}")))
    }

    async fn run(
        &self,
        input: ReadResourceInput,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let mut known = servers(&self.0)?.into_iter();
        let found = known.find(|it| it.name == input.server);
        let found = found.ok_or_else(|| unknown(&self.0, &input.server))?;
        let read = unless_stopped(&context, found.server.read_resource(input.uri)).await?;
        Ok(told(read.map_err(|failure| tell(failure.to_string()))?))
    }
}

/// Returns the intent of a call that reads. What a server is asked for it may as well refuse, so that
/// nobody is asked beside it; a rule that denies the server denies its resources.
fn reads(title: String) -> Intent {
    Intent {
        read_only: true,
        beside_others: true,
        subject: Subject::Nothing,
        waits: false,
        title,
    }
}

/// A server that the agent may use.
struct UsableServer {
    name: String,
    server: Arc<dyn Server>,
}

/// Returns the servers that the agent may use.
fn servers(caller: &Caller) -> Result<Vec<UsableServer>, ToolError> {
    let here = caller.here()?;
    let policy = here.rights.policy();
    let servers = here.servers.as_ref().map(|it| it.usable(&policy));
    let named = servers.unwrap_or_default().into_iter();
    let usable = |(name, server): (&str, &Arc<dyn Server>)| UsableServer {
        name: name.to_owned(),
        server: Arc::clone(server),
    };
    Ok(named.map(usable).collect())
}

/// Returns the error for a server that is not there for the agent.
fn unknown(caller: &Caller, name: &str) -> ToolError {
    let known = servers(caller).unwrap_or_default().into_iter();
    let known: Vec<_> = known.map(|it| it.name).collect();
    tell(prompt::served::no_server(name, &known))
}

async fn unless_stopped<T>(
    context: &ToolContext,
    asked: BoxFuture<'static, T>,
) -> Result<T, ToolError> {
    let answer = context.cancel.run_until_cancelled(asked).await;
    answer.ok_or_else(|| tell("interrupted before the server answered"))
}

fn told(content: Vec<ToolContent>) -> ToolOutput {
    ToolOutput {
        content,
        answer: None,
        then: FollowUp::Nothing,
    }
}
