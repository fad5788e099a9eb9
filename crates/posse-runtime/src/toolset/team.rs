//! Tools for teams: creating them, sharing tasks and notes, submitting plans.

mod exit_plan_mode;
mod note_read;
mod note_write;
mod place;
mod task_create;
mod task_get;
mod task_list;
mod task_number;
mod task_update;
mod team_create;
mod team_delete;
mod team_hand_over;
mod teammate;

use std::sync::Arc;

pub(crate) use crate::toolset::team::exit_plan_mode::{ExitPlanMode, PlanApprover};
use crate::toolset::team::note_read::NoteRead;
use crate::toolset::team::note_write::NoteWrite;
use crate::toolset::team::task_create::TaskCreate;
use crate::toolset::team::task_get::TaskGet;
use crate::toolset::team::task_list::TaskList;
use crate::toolset::team::task_update::TaskUpdate;
use crate::toolset::team::team_create::TeamCreate;
use crate::toolset::team::team_delete::TeamDelete;
use crate::toolset::team::team_hand_over::TeamHandOver;
pub(crate) use crate::toolset::team::teammate::teammate;
use crate::toolset::{Caller, tell};
use posse_port::store::OpResult;
use posse_port::tool::{Intent, Subject, Tool, ToolError, ToolOutput, Toolbox, typed};

/// Kind of agent that gets the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A main agent. `teams` is true if it can start agents.
    Main { teams: bool },
    /// A teammate. `plan` is true if it submits a plan first.
    Teammate { plan: bool },
    /// Another sub-agent.
    Sub,
}

/// Returns the team tools of an agent that has these `others`.
pub(crate) fn tools(caller: &Caller, holder: Holder, others: &Toolbox) -> Vec<Arc<dyn Tool>> {
    let runs_checks = others.get("Bash").is_some();
    let mut tools = vec![
        typed(TaskCreate(caller.clone())),
        typed(TaskGet(caller.clone())),
        typed(TaskList(caller.clone())),
        typed(TaskUpdate {
            caller: caller.clone(),
            runs_checks,
        }),
    ];
    match holder {
        Holder::Sub | Holder::Main { teams: false } => return tools,
        Holder::Main { teams: true } => {
            tools.extend([
                typed(TeamCreate(caller.clone())),
                typed(TeamDelete(caller.clone())),
            ]);
        }
        Holder::Teammate { plan: false } => {}
        Holder::Teammate { plan: true } => tools.push(typed(ExitPlanMode {
            caller: caller.clone(),
            approver: PlanApprover::Lead,
        })),
    }
    tools.extend([
        typed(TeamHandOver(caller.clone())),
        typed(NoteWrite(caller.clone())),
        typed(NoteRead(caller.clone())),
    ]);
    tools
}

/// Returns the intent of a call that reads from the store.
fn looks(title: impl Into<String>) -> Intent {
    Intent {
        beside_others: true,
        ..changes(title)
    }
}

/// Returns the intent of a call that changes the store, in order with other calls.
fn changes(title: impl Into<String>) -> Intent {
    Intent {
        // Read-only to the permission rules: only posse's own records change.
        read_only: true,
        beside_others: false,
        subject: Subject::Nothing,
        waits: false,
        title: title.into(),
    }
}

/// Returns the result of an operation: `told` if it succeeded, otherwise the refusal with `hint`.
fn done(results: &[OpResult], told: &str, hint: &str) -> Result<ToolOutput, ToolError> {
    match results.iter().find_map(|result| result.as_ref().err()) {
        None => Ok(ToolOutput::text(told)),
        Some(refusal) => Err(tell(format!("{hint}: {refusal}."))),
    }
}
