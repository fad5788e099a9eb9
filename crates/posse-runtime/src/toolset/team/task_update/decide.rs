//! Decides which operations a call of TaskUpdate makes. Pure.

#[cfg(test)]
mod tests;

use posse_protocol::{AgentId, MailId, MailKind, Name, Task, TaskId, TaskStatus, Team};
use uuid::Uuid;

use crate::prompt;
use crate::toolset::team::task_number::ids;
use crate::toolset::team::task_update::TaskUpdateInput;
use posse_port::store::{Address, Op, Refusal, TaskChange};
use posse_port::text::summary;

/// Name by which an agent claims a task for itself.
const ME: &str = "me";
/// Name of the person.
const USER: &str = "user";

/// The caller, and the list of the task.
pub(super) struct UpdateContext<'a> {
    /// The calling agent.
    pub(super) agent: AgentId,
    /// Its path, which names it as owner in a session without a team.
    pub(super) path: &'a str,
    /// Team whose list it is; none for the session's.
    pub(super) list: Option<&'a Name>,
    /// The team, loaded if the call [names a member](names_somebody).
    pub(super) team: Option<&'a Team>,
}

/// Returns true if a call assigns the task to a member by name.
pub(super) fn names_somebody(input: &TaskUpdateInput) -> bool {
    input
        .owner
        .as_deref()
        .is_some_and(|owner| !matches!(owner, "" | ME | USER))
}

/// What happens to the owner.
enum NewOwner<'a> {
    /// It stays, is removed, or is the person.
    Plain(Option<Option<String>>),
    /// The caller claims the task.
    Claimed,
    /// A member gets the task.
    Given(&'a Team, Name),
}

/// Why a task is not changed; told to the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UpdateError {
    #[error("check: change it before you complete the task, not with the same call")]
    CheckChanged,
    #[error("Refused: {0}.")]
    Refused(Refusal),
    #[error("Nothing to change: give status, owner, or another field of the task.")]
    Nothing,
    #[error("owner: a task in progress must have an owner")]
    NoOwner,
    #[error(
        "owner: claiming a task makes it in_progress; omit status, or leave owner empty to release it"
    )]
    ClaimedAsPending,
    #[error("owner: without a team the owner is `me` or `user`")]
    NoTeam,
    #[error(
        "owner: only the lead assigns tasks to others; claim it yourself with `me`, or write to {0}"
    )]
    NotLead(String),
    #[error("owner: no member of team {team} is named {given}; there are {names}")]
    NoMember {
        team: Name,
        given: String,
        names: String,
    },
    #[error("Refused: task {0} is completed.")]
    Completed(TaskId),
    #[error("Refused: task {id} waits for {waits}; claim another until then.")]
    Waits { id: TaskId, waits: String },
    #[error("Refused: task {id} is {by}'s; claim another, or write to them.")]
    Taken { id: TaskId, by: String },
}

/// Returns the command that must succeed before the task can be completed.
pub(super) fn must_pass(
    input: &TaskUpdateInput,
    task: &Task,
) -> Result<Option<String>, UpdateError> {
    if input.status != Some(TaskStatus::Completed) || task.status == TaskStatus::Completed {
        return Ok(None);
    }
    match (&task.check, &input.check) {
        (Some(_), Some(_)) => Err(UpdateError::CheckChanged),
        (check, _) => Ok(check.clone()),
    }
}

/// Returns the operations, or an error for the model; no operations if the caller has completed
/// the task already. `passed` is the check that has succeeded.
pub(super) fn decide(
    input: &TaskUpdateInput,
    task: &Task,
    at: &UpdateContext<'_>,
    passed: Option<String>,
) -> Result<Vec<Op>, UpdateError> {
    let team = at.list.cloned();
    let owner = owner(input, task, at)?;
    let mut status = input.status;
    let mut ops = Vec::new();
    if matches!(owner, NewOwner::Claimed) {
        may_claim(task, at)?;
        // Claiming makes it in progress already.
        status = status.filter(|status| *status != TaskStatus::InProgress);
        ops.push(Op::Claim {
            team: team.clone(),
            id: task.id,
        });
    }
    let change = TaskChange {
        subject: input.subject.clone(),
        description: input.description.clone(),
        active_form: input.active_form.clone(),
        status,
        owner: match &owner {
            NewOwner::Plain(owner) => owner.clone(),
            NewOwner::Claimed => None,
            NewOwner::Given(_, name) => Some(Some(name.to_string())),
        },
        block_on: ids(&input.add_blocked_by),
        unblock_from: ids(&input.remove_blocked_by),
        role: input.role.clone(),
        check: input.check.clone(),
        passed,
        metadata: input.metadata.clone(),
    };
    let completes = TaskChange {
        status: Some(TaskStatus::Completed),
        ..TaskChange::default()
    };
    if task.status == TaskStatus::Completed && change == completes {
        // Who completed it says so twice: a crash or a summary may have hidden the first time.
        if is_mine(task, at) {
            return Ok(Vec::new());
        }
        return Err(UpdateError::Refused(Refusal::AlreadyCompleted {
            id: task.id,
        }));
    }
    if change != TaskChange::default() {
        // If two agents complete it, one is told: it may have done the same work.
        let expect = (change.status == completes.status && ops.is_empty()).then_some(task.version);
        let (id, change) = (task.id, Box::new(change));
        ops.push(Op::UpdateTask {
            team: team.clone(),
            id,
            expect,
            change,
        });
    }
    for other in ids(&input.add_blocks) {
        let change = TaskChange {
            block_on: vec![task.id],
            ..TaskChange::default()
        };
        ops.push(Op::UpdateTask {
            team: team.clone(),
            id: other,
            expect: None,
            change: Box::new(change),
        });
    }
    if let NewOwner::Given(team, name) = owner {
        ops.extend(told(input, task, team, name));
    }
    if ops.is_empty() {
        return Err(UpdateError::Nothing);
    }
    Ok(ops)
}

/// Decides what happens to the owner.
fn owner<'a>(
    input: &TaskUpdateInput,
    task: &Task,
    at: &UpdateContext<'a>,
) -> Result<NewOwner<'a>, UpdateError> {
    let Some(given) = input.owner.as_deref() else {
        // Starting a task claims it; any other change leaves the owner as it is.
        let begins = input.status == Some(TaskStatus::InProgress);
        return Ok(if begins {
            NewOwner::Claimed
        } else {
            NewOwner::Plain(None)
        });
    };
    let me = at
        .team
        .and_then(|team| team.members.iter().find(|member| member.agent == at.agent));
    let mine = given == ME
        || (at.list.is_none() && given == at.path)
        || me.is_some_and(|me| me.name.as_str() == given)
        || (given == Name::LEAD && at.team.is_some_and(|team| team.lead == at.agent));
    match (given, input.status) {
        ("", Some(TaskStatus::InProgress)) => Err(UpdateError::NoOwner),
        ("", _) => Ok(NewOwner::Plain(Some(None))),
        (_, Some(TaskStatus::Pending)) if mine => Err(UpdateError::ClaimedAsPending),
        // Naming itself as owner of a task that it has changes nothing.
        (_, Some(TaskStatus::Completed | TaskStatus::Deleted)) if mine && is_mine(task, at) => {
            Ok(NewOwner::Plain(None))
        }
        _ if mine => Ok(NewOwner::Claimed),
        (USER, _) => Ok(NewOwner::Plain(Some(Some(USER.to_owned())))),
        (given, _) => another(given, at),
    }
}

/// Returns the member that the lead assigns a task to.
fn another<'a>(given: &str, at: &UpdateContext<'a>) -> Result<NewOwner<'a>, UpdateError> {
    let Some(team) = at.team else {
        return Err(UpdateError::NoTeam);
    };
    if team.lead != at.agent {
        return Err(UpdateError::NotLead(summary(given)));
    }
    match team
        .members
        .iter()
        .find(|member| member.name.as_str() == given)
    {
        Some(member) => Ok(NewOwner::Given(team, member.name.clone())),
        None => {
            let names: Vec<&str> = team
                .members
                .iter()
                .map(|member| member.name.as_str())
                .collect();
            Err(UpdateError::NoMember {
                team: team.name.clone(),
                given: summary(given),
                names: names.join(", "),
            })
        }
    }
}

/// Returns true if the caller owns a task.
fn is_mine(task: &Task, at: &UpdateContext<'_>) -> bool {
    task.owner
        .as_ref()
        .is_some_and(|owner| owner.agent == Some(at.agent))
}

/// Refuses a task that cannot be claimed, so that nothing else of the call is done either.
fn may_claim(task: &Task, at: &UpdateContext<'_>) -> Result<(), UpdateError> {
    let waits = task
        .waits_for
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    match task.status {
        TaskStatus::Completed => Err(UpdateError::Completed(task.id)),
        TaskStatus::Pending if !waits.is_empty() => Err(UpdateError::Waits { id: task.id, waits }),
        TaskStatus::Pending if task.owner.is_some() && !is_mine(task, at) => {
            let by = task
                .owner
                .as_ref()
                .map_or_else(String::new, |owner| summary(&owner.name));
            Err(UpdateError::Taken { id: task.id, by })
        }
        // The store knows whether the owner's process has died, so it decides the rest.
        _ => Ok(()),
    }
}

/// Returns the mail to a member that is assigned a task it did not have.
fn told(input: &TaskUpdateInput, task: &Task, team: &Team, name: Name) -> Option<Op> {
    let member = team.members.iter().find(|member| member.name == name)?;
    let has_it = task
        .owner
        .as_ref()
        .is_some_and(|owner| owner.agent == Some(member.agent));
    if has_it || input.status.unwrap_or(task.status).is_settled() {
        return None;
    }
    let mut given = task.clone();
    given.subject = input.subject.clone().unwrap_or(given.subject);
    given.description = input.description.clone().unwrap_or(given.description);
    Some(Op::Send {
        id: MailId::from(Uuid::now_v7()),
        to: Address::Member {
            team: team.name.clone(),
            name,
        },
        kind: MailKind::Text,
        summary: summary(&format!("Task {}: {}", given.id, given.subject)),
        body: prompt::team::assigned(&given),
    })
}
