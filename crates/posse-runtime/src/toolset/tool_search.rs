//! The ToolSearch tool: brings definitions of tools that servers have.

mod rank;

use std::borrow::Cow;
use std::time::Duration;

use posse_protocol::ToolContent;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::definition::tool_name::TOOL_SEARCH;
use crate::prompt;
use crate::toolset::Caller;
use crate::toolset::tool_search::rank::Query;
use crate::toolset::watch::tell;
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// How long servers are waited for that are still being connected.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of tools that words find.
const FOUND: usize = 5;
/// Maximum number of tools that words find.
const MOST: usize = 20;

const NO_SERVERS: &str = "there are no servers";
const SAYS_NOTHING: &str = "query: say what the tool is to do, or select:NAME";

/// Looks for tools of servers.
pub(super) struct ToolSearch(pub(super) Caller);

/// Input of ToolSearch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolSearchInput {
    /// Words about what you want to do; a word with + before it must be in the tool's name. Or
    /// `select:` and names of tools, separated by commas.
    query: String,
    /// How many tools words may find, at most 20; 5 if absent.
    max_results: Option<usize>,
}

impl TypedTool for ToolSearch {
    type Input = ToolSearchInput;

    const NAME: &'static str = TOOL_SEARCH;

    fn description(&self) -> Cow<'static, str> {
        "Loads tools of servers. You are told which servers there are and what their tools are \
         called; you can call a tool once ToolSearch has brought its definition. Load all the tools \
         that you expect to need in one call. After a compaction load them again."
            .into()
    }

    fn intent(&self, input: &ToolSearchInput, _: &Workspace) -> Result<Intent, ToolError> {
        if Query::read(&input.query).is_none() {
            return Err(tell(SAYS_NOTHING));
        }
        Ok(Intent {
            read_only: true,
            beside_others: true,
            subject: Subject::Nothing,
            waits: false,
            title: format!("look for tools: {}", text::summary(&input.query)),
        })
    }

    async fn run(
        &self,
        input: ToolSearchInput,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let here = self.0.here()?;
        let servers = here.servers.as_ref().ok_or_else(|| tell(NO_SERVERS))?;
        let policy = here.rights.policy();
        let query = Query::read(&input.query).ok_or_else(|| tell(SAYS_NOTHING))?;
        let most = input.max_results.unwrap_or(FOUND).clamp(1, MOST);
        let look = || query.find(&servers.deferred(&policy), most);
        let mut found = look();
        let enough = match &query {
            Query::Named(names) => found.len() >= names.len(),
            Query::Words { .. } => !found.is_empty(),
        };
        if !enough {
            tokio::select! {
                biased;
                () = servers.set.settled() => {}
                () = context.clock.sleep(PATIENCE) => {}
                () = context.cancel.cancelled() => {
                    return Err(tell("interrupted while servers were being connected"));
                }
            }
            found = look();
        }
        let missing = query.missing(&found);
        let mut content = Vec::new();
        if found.is_empty() || !missing.is_empty() {
            let listed: String = servers
                .listed(&policy)
                .into_iter()
                .map(|(_, entry)| entry)
                .collect();
            let told = prompt::served::not_found(&missing, &listed);
            content.push(ToolContent::text(told));
        }
        if !found.is_empty() {
            content.push(ToolContent::Tools { tools: found });
        }
        Ok(ToolOutput {
            content,
            answer: None,
            then: FollowUp::Nothing,
        })
    }
}
