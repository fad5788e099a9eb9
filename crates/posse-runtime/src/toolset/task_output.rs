//! The TaskOutput tool: reports a run's status and output.

use std::borrow::Cow;
use std::time::Duration;

use posse_protocol::{Notification, RunStatus};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::output::tail;
use crate::prompt;
use crate::prompt::Tail;
use crate::prompt::Waited;
use crate::toolset::Caller;
use crate::toolset::watch::{Found, tell};
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// Default time to wait, in milliseconds.
pub(super) const TIMEOUT: u64 = 30_000;
/// Maximum time to wait, in milliseconds.
pub(super) const LONGEST: u64 = 600_000;
/// Maximum number of bytes of output that are shown.
const TAIL: usize = 30_000;

/// The TaskOutput tool.
pub(super) struct TaskOutput(pub(super) Caller);

/// Input of TaskOutput.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskOutputInput {
    /// The id of the sub-agent or background command, or the sub-agent's name.
    task_id: String,
    /// Whether to wait until it ends; true if absent.
    block: Option<bool>,
    /// How long to wait, in milliseconds: at most 600000; 30000 if absent.
    timeout: Option<u64>,
}

impl TypedTool for TaskOutput {
    type Input = TaskOutputInput;

    const NAME: &'static str = "TaskOutput";

    fn description(&self) -> Cow<'static, str> {
        "Reports the status and the output so far of a sub-agent or background command, or waits \
         for it to end. To look at output, prefer reading the output file; to wait for several, \
         use Wait. You are notified of the end anyway."
            .into()
    }

    fn intent(&self, input: &TaskOutputInput, _: &Workspace) -> Result<Intent, ToolError> {
        let timeout = patience(input.timeout)?;
        Ok(Intent {
            read_only: true,
            beside_others: true,
            subject: Subject::Nothing,
            waits: input.block.unwrap_or(true) && !timeout.is_zero(),
            title: format!("output of {}", text::summary(&input.task_id)),
        })
    }

    async fn run(
        &self,
        input: TaskOutputInput,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let timeout = patience(input.timeout)?;
        let block = input.block.unwrap_or(true);
        let (facts, status) = match self.0.find(&input.task_id).await? {
            Found::Stored { facts, status } => {
                if let (true, Some((end, number))) = (block, self.0.unseen_end(facts.task).await?) {
                    return Ok(saw(end, vec![number]));
                }
                (facts, status)
            }
            Found::Live(run) if block => {
                tokio::select! {
                    // The end first: if it is there, it is reported even if the time is over.
                    biased;
                    end = run.ended() => {
                        let took = self.0.notices(std::slice::from_ref(&end)).await?;
                        return Ok(saw(end.as_ref().clone(), took));
                    }
                    () = context.cancel.cancelled() => return Err(tell("interrupted while waiting")),
                    () = context.clock.sleep(timeout) => (run.facts.clone(), RunStatus::Running),
                }
            }
            Found::Live(run) => (run.facts.clone(), RunStatus::Running),
        };
        let nothing = |_| Tail {
            text: String::new(),
            before: 0,
        };
        let tail = tail(&facts.output_file, TAIL).unwrap_or_else(nothing);
        Ok(ToolOutput::text(prompt::output(
            &facts,
            status,
            &tail,
            self.0.reader,
        )))
    }
}

/// Returns the end as output. Its mail counts as shown, so that it is not reported again.
fn saw(end: Notification, took: Vec<u64>) -> ToolOutput {
    let told = Waited {
        ended: &[end],
        known: &[],
        running: &[],
        timed_out: false,
    }
    .told();
    ToolOutput {
        then: FollowUp::MailShown(took),
        ..ToolOutput::text(told)
    }
}

/// Parses the time to wait.
pub(super) fn patience(timeout: Option<u64>) -> Result<Duration, ToolError> {
    match timeout.unwrap_or(TIMEOUT) {
        timeout if timeout > LONGEST => {
            Err(tell(format!("timeout is at most {LONGEST} milliseconds")))
        }
        timeout => Ok(Duration::from_millis(timeout)),
    }
}
