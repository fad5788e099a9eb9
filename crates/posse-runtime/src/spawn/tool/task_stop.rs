//! The TaskStop tool: stops a run with all that it has started.

use std::borrow::Cow;

use posse_protocol::RunStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Caller;
use super::watch::{Found, tell};
use crate::spawn::house::By;
use crate::spawn::words;
use crate::tool::{Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};

/// Stops runs.
pub(super) struct TaskStop(pub(super) Caller);

/// What TaskStop is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskStopInput {
    /// The id of the sub-agent or background command, or the sub-agent's name.
    #[serde(alias = "shell_id", alias = "name")]
    task_id: String,
}

impl TypedTool for TaskStop {
    type Input = TaskStopInput;

    const NAME: &'static str = "TaskStop";

    fn description(&self) -> Cow<'static, str> {
        "Stops a sub-agent, with every agent and command that it has started, or a background command. It \
         returns when they are gone. What you stop sends no notification."
            .into()
    }

    fn intent(&self, input: &TaskStopInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent {
            read_only: true,
            beside_others: true,
            subject: Subject::Nothing,
            waits: true,
            title: format!("stop {}", words::summary(&input.task_id)),
        })
    }

    async fn run(&self, input: TaskStopInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let run = match self.0.find(&input.task_id).await? {
            Found::Live(run) => run,
            Found::Stored { facts, status: RunStatus::Running } => {
                let what = format!("{} is at work in another process; it can be stopped there", facts.task);
                return Err(tell(what));
            }
            Found::Stored { facts, status } => return Err(tell(words::not_running(&facts, status))),
        };
        let (house, me) = (&self.0.house, self.0.agent);
        if !house.may_stop(me, &run) {
            return Err(tell(format!(
                "{} is none of yours: only what comes from you can be stopped",
                run.facts.task
            )));
        }
        let below = house.below(run.facts.task);
        match house.stop(run.facts.task, By::Agent(me)).await {
            Some(end) if end.status == RunStatus::Killed => {
                Ok(ToolOutput::text(words::stopped(&run.facts, below)))
            }
            // It ended by itself before it could be stopped.
            Some(end) => Err(tell(words::not_running(&run.facts, end.status))),
            None => Err(tell(words::not_running(&run.facts, RunStatus::Completed))),
        }
    }
}
