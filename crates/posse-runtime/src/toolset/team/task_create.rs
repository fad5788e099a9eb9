//! The TaskCreate tool: adds a task to the list.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::toolset::team::changes;
use crate::toolset::team::task_number::{TaskNumber, ids};
use crate::toolset::{Caller, tell};
use posse_port::store::{Done, NewTask, Op, OpResult};
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The TaskCreate tool.
pub(super) struct TaskCreate(pub(super) Caller);

/// Input of TaskCreate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskCreateInput {
    /// What to do, in one line.
    subject: String,
    /// Everything needed to do it.
    description: Option<String>,
    /// The subject while it is being done: `Fixing the parser`.
    active_form: Option<String>,
    /// Tasks that must be done first.
    #[serde(default)]
    blocked_by: Vec<TaskNumber>,
    /// Only teammates of this role or type claim it by themselves; anyone if absent.
    role: Option<String>,
    /// A command that must succeed before the task can be completed.
    check: Option<String>,
    /// Other data to keep with it.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// The team, if you are in several.
    #[serde(rename = "team_name")]
    team_name: Option<String>,
}

impl TypedTool for TaskCreate {
    type Input = TaskCreateInput;

    const NAME: &'static str = "TaskCreate";

    fn description(&self) -> Cow<'static, str> {
        "Adds a task to your team's shared list; without a team, to the session's own. Teammates \
         claim open tasks by themselves. Use it for work with several steps or workers, one task \
         for each piece that can be done and checked separately."
            .into()
    }

    fn intent(&self, input: &TaskCreateInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(changes(format!(
            "new task: {}",
            text::summary(&input.subject)
        )))
    }

    async fn run(&self, input: TaskCreateInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.subject.trim().is_empty() {
            return Err(tell("subject is empty: say in one line what to do"));
        }
        let list = self.0.list(input.team_name.as_deref()).await?;
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let task = NewTask {
            subject: input.subject,
            description: input.description.unwrap_or_default(),
            active_form: given(input.active_form),
            blocked_by: ids(&input.blocked_by),
            role: given(input.role),
            check: given(input.check),
            metadata: input.metadata,
        };
        let op = Op::CreateTask {
            team: list.team,
            task: Box::new(task),
        };
        Ok(ToolOutput {
            then: FollowUp::Operations(vec![op]),
            ..ToolOutput::text("")
        })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        match results.first() {
            Some(Ok(Done::TaskCreated(id))) => {
                Ok(ToolOutput::text(format!("Task {id} is on the list.")))
            }
            Some(Err(refusal)) => Err(tell(format!("No task was created: {refusal}."))),
            _ => Err(tell("No task was created.")),
        }
    }
}
