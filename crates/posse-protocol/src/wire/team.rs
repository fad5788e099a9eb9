//! Teams and their members, on the wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spending::WireCost;
use crate::{
    IdleReason, IdleReport, MemberChange, Name, PermissionMode, PlannedTask, TaskId, TaskReport,
    TaskStatus, TeamPlan, TeamRole,
};

tagged! {
    /// What happened to a member of a team.
    #[schemars(rename = "MemberChange")]
    enum WireMemberChange {
        /// It joined the team.
        Joined {
            /// Its type.
            agent_type: String,
            /// Its model.
            model: String,
            /// What runs it: `in-process`, `tmux`, …
            backend: String,
        }
        /// It is working.
        Running {}
        /// It has nothing to do.
        Idle {
            /// What it has done since it was last idle.
            report: Box<WireIdleReport>,
        }
        /// It now lives in this process, because its previous process is gone.
        TakenOver {}
        /// It has ended and left the team.
        Left {}
    }
}

impl From<MemberChange> for WireMemberChange {
    fn from(change: MemberChange) -> Self {
        match change {
            MemberChange::Joined {
                agent_type,
                model,
                backend,
            } => Self::Joined {
                agent_type,
                model,
                backend,
            },
            MemberChange::Running => Self::Running {},
            MemberChange::Idle(report) => Self::Idle {
                report: Box::new((*report).into()),
            },
            MemberChange::TakenOver => Self::TakenOver {},
            MemberChange::Left => Self::Left {},
        }
    }
}

impl From<WireMemberChange> for MemberChange {
    fn from(change: WireMemberChange) -> Self {
        match change {
            WireMemberChange::Joined {
                agent_type,
                model,
                backend,
            } => Self::Joined {
                agent_type,
                model,
                backend,
            },
            WireMemberChange::Running {} => Self::Running,
            WireMemberChange::Idle { report } => Self::Idle(Box::new((*report).into())),
            WireMemberChange::TakenOver {} => Self::TakenOver,
            WireMemberChange::Left {} => Self::Left,
        }
    }
}

/// What a member has done since it was last idle.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IdleReport")]
pub(super) struct WireIdleReport {
    /// The team.
    team: Name,
    /// Why it has nothing to do.
    reason: IdleReason,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Its last message.
    answer: String,
    /// The tasks that it had.
    tasks: Vec<WireTaskReport>,
    /// The branch of its own worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

both_ways!(IdleReport, WireIdleReport { team, reason, error, answer, branch } each { tasks });

/// A task as it stands.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskReport")]
struct WireTaskReport {
    /// Its number.
    id: TaskId,
    /// The task, in a line.
    subject: String,
    /// Its status.
    status: TaskStatus,
}

both_ways!(
    TaskReport,
    WireTaskReport {
        id,
        subject,
        status
    }
);

/// A declared team.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TeamPlan")]
pub(super) struct WirePlan {
    /// What the team is for.
    description: String,
    /// The roles beside the lead, by name.
    roles: BTreeMap<Name, WireRole>,
    /// The first tasks; they are numbered from 1.
    tasks: Vec<WirePlannedTask>,
}

impl From<TeamPlan> for WirePlan {
    fn from(plan: TeamPlan) -> Self {
        Self {
            description: plan.description,
            roles: roles(plan.roles),
            tasks: plan.tasks.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<WirePlan> for TeamPlan {
    fn from(plan: WirePlan) -> Self {
        Self {
            description: plan.description,
            roles: roles(plan.roles),
            tasks: plan.tasks.into_iter().map(Into::into).collect(),
        }
    }
}

fn roles<A, B: From<A>>(roles: BTreeMap<Name, A>) -> BTreeMap<Name, B> {
    let roles = roles.into_iter();
    roles.map(|(name, role)| (name, role.into())).collect()
}

/// A role in a team.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TeamRole")]
struct WireRole {
    /// The type of agent; `general-purpose` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// What a member is told first, before the goal.
    prompt: String,
    /// The model, if not that of the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The effort, if not that of the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    /// The permission mode. In `plan`, a member hands in a plan before it changes anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<PermissionMode>,
    /// True if each member has its own worktree.
    worktree: bool,
    /// What each member may spend.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_usd: Option<WireCost>,
    /// The number of members.
    count: u32,
    /// Labels of the tasks that a member takes; if absent, tasks without a label or with the role's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    takes: Option<Vec<String>>,
}

impl From<TeamRole> for WireRole {
    fn from(role: TeamRole) -> Self {
        Self {
            agent: role.agent,
            prompt: role.prompt,
            model: role.model,
            effort: role.effort,
            mode: role.mode,
            worktree: role.worktree,
            budget_usd: role.budget.map(WireCost),
            count: role.count,
            takes: role.takes,
        }
    }
}

impl From<WireRole> for TeamRole {
    fn from(role: WireRole) -> Self {
        Self {
            agent: role.agent,
            prompt: role.prompt,
            model: role.model,
            effort: role.effort,
            mode: role.mode,
            worktree: role.worktree,
            budget: role.budget_usd.map(|cost| cost.0),
            count: role.count,
            takes: role.takes,
        }
    }
}

/// A task to begin with.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PlannedTask")]
struct WirePlannedTask {
    /// The task, in a line.
    subject: String,
    /// The task, at length.
    description: String,
    /// The label by which roles take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// The numbers of the tasks before it.
    blocked_by: Vec<u64>,
    /// The command that must pass before it counts as completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<String>,
}

both_ways!(
    PlannedTask,
    WirePlannedTask {
        subject,
        description,
        role,
        blocked_by,
        check
    }
);
