//! The TaskGet tool: shows a task in full.

use std::borrow::Cow;

use posse_protocol::TaskStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::prompt;
use crate::toolset::team::looks;
use crate::toolset::team::place::failed;
use crate::toolset::team::task_number::TaskNumber;
use crate::toolset::{Caller, tell};
use posse_port::tool::{Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};

/// The TaskGet tool.
pub(super) struct TaskGet(pub(super) Caller);

/// Input of TaskGet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskGetInput {
    /// The task's number.
    #[serde(rename = "taskId")]
    task_id: TaskNumber,
    /// The team, if you are in several.
    team_name: Option<String>,
}

impl TypedTool for TaskGet {
    type Input = TaskGetInput;

    const NAME: &'static str = "TaskGet";

    fn description(&self) -> Cow<'static, str> {
        "Shows a task in full: its description, its owner, what it waits for and what waits for it."
            .into()
    }

    fn intent(&self, input: &TaskGetInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(looks(format!("task {}", input.task_id.0)))
    }

    async fn run(&self, input: TaskGetInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let list = self.0.list(input.team_name.as_deref()).await?;
        let id = input.task_id.0;
        match self
            .0
            .factory
            .ports
            .store
            .task(list, id)
            .await
            .map_err(failed)?
        {
            Some(task) if task.status == TaskStatus::Deleted => {
                Err(tell(format!("Task {id} was deleted.")))
            }
            Some(task) => Ok(ToolOutput::text(prompt::team::details(&task))),
            None => Err(tell(format!(
                "There is no task {id}. TaskList shows all tasks."
            ))),
        }
    }
}
