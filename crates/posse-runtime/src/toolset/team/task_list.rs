//! The TaskList tool: lists tasks.

use std::borrow::Cow;

use posse_protocol::TaskId;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::prompt;
use crate::toolset::Caller;
use crate::toolset::team::looks;
use crate::toolset::team::place::failed;
use posse_port::store::{Page, TaskFilter};
use posse_port::tool::{Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};

/// Maximum number of tasks that are shown at once.
const TASKS: usize = 100;

/// The TaskList tool.
pub(super) struct TaskList(pub(super) Caller);

/// Input of TaskList.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskListInput {
    /// Only tasks with a higher number, to see the next ones.
    after: Option<u64>,
    /// The team, if you are in several.
    team_name: Option<String>,
}

impl TypedTool for TaskList {
    type Input = TaskListInput;

    const NAME: &'static str = "TaskList";

    fn description(&self) -> Cow<'static, str> {
        "Lists the tasks of your team, or of the session if you are in none: number, subject, \
         status, owner, and what it still waits for. You can claim a task that is pending, has no \
         owner and is not blocked."
            .into()
    }

    fn intent(&self, _: &TaskListInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(looks("list tasks"))
    }

    async fn run(&self, input: TaskListInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let list = self.0.list(input.team_name.as_deref()).await?;
        // One more than is shown tells whether there are more.
        let page = Page::after(TaskId(input.after.unwrap_or(0)), TASKS + 1);
        let mut tasks = self
            .0
            .factory
            .ports
            .store
            .tasks(list, TaskFilter::default(), page)
            .await
            .map_err(failed)?;
        let more = tasks.len() > TASKS;
        tasks.truncate(TASKS);
        Ok(ToolOutput::text(prompt::team::tasks(&tasks, more)))
    }
}
