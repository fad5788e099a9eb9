//! Tools of a side query.

use std::sync::Arc;
use std::time::Duration;

use posse_protocol::{ContentBlock, RawJson, ToolContent};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::side_query::SideQueryError;
use crate::definition::tool_name::meant;
use crate::supervise::Calls;
use posse_permission::{Consent, Rights, Verdict};
use posse_port::clock::Clock;
use posse_port::store::CallKey;
use posse_port::tool::{
    FollowUp, Intent, KnownFiles, LiveOutput, NoHosts, ToolContext, ToolError, ToolOutput, Toolbox,
};

/// Maximum number of replies of a model that may use no tools.
const ANSWER_TURNS: usize = 4;
/// Time that a tool has to end when it is cancelled.
const GRACE: Duration = Duration::from_millis(900);

const NO_TOOLS: &str = "Not run: this is a question on the side, and no tools may be used. Answer \
                        in words, from what you already know.";
const CRASHED: &str = "The tool crashed. Part of it may have taken effect.";

/// Tools that the model may use in a side query.
pub(crate) enum SideTools {
    /// None.
    Refused,
    /// These, as far as the rights allow. Nobody is asked for approval.
    Allowed {
        /// The tools.
        tools: Toolbox,
        /// The rights.
        rights: Rights,
        /// Files that the model has read in the side query; the agent's own are not changed.
        seen: KnownFiles,
        /// Maximum number of replies.
        turns: usize,
    },
}

type SideToolRun = Result<ToolOutput, ToolError>;

impl SideTools {
    /// Returns the maximum number of replies.
    pub(super) fn turns(&self) -> usize {
        match self {
            Self::Refused => ANSWER_TURNS,
            Self::Allowed { turns, .. } => *turns,
        }
    }

    /// Returns the results of the calls in a reply, in order; empty if there are no calls.
    pub(super) async fn answer(
        &self,
        content: &[ContentBlock],
        clock: &Arc<dyn Clock>,
        cancel: &CancellationToken,
    ) -> Result<Vec<ContentBlock>, SideQueryError> {
        let mut results = Vec::new();
        for block in content {
            let ContentBlock::ToolUse { id, name, input } = block else {
                continue;
            };
            let (name, input) = &meant(name, input);
            let ran = match self.allowed(name, input) {
                Ok((tools, rights, seen, intent)) => {
                    let context = ToolContext {
                        key: CallKey { seq: 0, ordinal: 0 },
                        call: id.clone(),
                        marker: format!("aside.{}", Uuid::now_v7()),
                        place: rights.place(&intent.subject, &Consent::Rules),
                        subject: intent.subject,
                        workspace: Arc::clone(rights.workspace()),
                        seen: seen.clone(),
                        files: rights.policy(),
                        hosts: Arc::new(NoHosts),
                        clock: Arc::clone(clock),
                        first: None,
                        output: LiveOutput::default(),
                        wants_answer: false,
                        cancel: cancel.child_token(),
                    };
                    run(tools, name, RawJson::clone(input), context).await?
                }
                Err(why) => Err(ToolError::Tell(why)),
            };
            results.push(result(id, ran));
        }
        Ok(results)
    }

    /// Returns what is needed to run a call, or why it may not run.
    fn allowed(
        &self,
        tool: &str,
        input: &RawJson,
    ) -> Result<(&Toolbox, &Rights, &KnownFiles, Intent), String> {
        let Self::Allowed {
            tools,
            rights,
            seen,
            ..
        } = self
        else {
            return Err(NO_TOOLS.to_owned());
        };
        if tools.get(tool).is_none() {
            let names = tools.names().join(", ");
            return Err(format!(
                "Not run: this is a question on the side, and only {names} may be used."
            ));
        }
        let intent = tools
            .intent(tool, input, rights.workspace())
            .map_err(|error| error.to_string())?;
        match rights.verdict(tool, &intent) {
            Verdict::Allow => Ok((tools, rights, seen, intent)),
            Verdict::Ask(why) => Err(format!(
                "Denied: approval is required and no one is available \
                                              to give it: {why}"
            )),
            Verdict::Deny(why) => Err(format!("Denied: {why}")),
        }
    }
}

/// Runs a call until it ends or is cancelled.
async fn run(
    tools: &Toolbox,
    name: &str,
    input: RawJson,
    context: ToolContext,
) -> Result<SideToolRun, SideQueryError> {
    let Some(tool) = tools.get(name) else {
        return Ok(Err(ToolError::Tell(NO_TOOLS.into())));
    };
    let (cancel, clock) = (context.cancel.clone(), Arc::clone(&context.clock));
    let mut calls: Calls<(), SideToolRun> = Calls::new();
    calls.start((), |_| tool.run(input, context));
    let ended = tokio::select! {
        ended = calls.next() => ended,
        () = cancel.cancelled() => {
            tokio::select! {
                _ = calls.next() => {}
                () = clock.sleep(GRACE) => calls.give_up(),
            }
            return Err(SideQueryError::Cancelled);
        }
    };
    let crashed = || Err(ToolError::Tell(CRASHED.into()));
    Ok(ended.and_then(|((), ran)| ran).unwrap_or_else(crashed))
}

fn result(id: &str, ran: SideToolRun) -> ContentBlock {
    let (content, is_error) = match ran {
        Ok(ToolOutput {
            content,
            then: FollowUp::Nothing,
            ..
        }) => (content, false),
        Ok(_) => (
            vec![ToolContent::text(
                "Not done: a question on the side must not have effects.",
            )],
            true,
        ),
        Err(error) => (vec![ToolContent::text(error.to_string())], true),
    };
    ContentBlock::ToolResult {
        tool_use_id: id.to_owned(),
        content,
        is_error,
    }
}
