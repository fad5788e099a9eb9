//! Control messages between members of a team: what the bodies of typed mail say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MailId, MailKind, Name, TaskId, TaskStatus};

/// What is asked for with yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// That a teammate ends.
    Shutdown,
    /// That a plan is carried out.
    Plan,
}

impl RequestKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Shutdown, Self::Plan];

    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shutdown => "shutdown",
            Self::Plan => "plan",
        }
    }

    /// The kind of mail that asks.
    pub fn asking(self) -> MailKind {
        match self {
            Self::Shutdown => MailKind::ShutdownRequest,
            Self::Plan => MailKind::PlanApprovalRequest,
        }
    }

    /// The kind of mail that answers.
    pub fn answering(self) -> MailKind {
        match self {
            Self::Shutdown => MailKind::ShutdownResponse,
            Self::Plan => MailKind::PlanApprovalResponse,
        }
    }

    /// The summary of a mail that asks.
    pub fn asked(self) -> &'static str {
        match self {
            Self::Shutdown => "asked to shut down",
            Self::Plan => "a plan to be approved",
        }
    }

    /// The summary of a mail that answers.
    pub fn answered(self, approve: bool) -> &'static str {
        match (self, approve) {
            (Self::Shutdown, true) => "shuts down",
            (Self::Shutdown, false) => "declines to shut down",
            (Self::Plan, true) => "the plan is approved",
            (Self::Plan, false) => "the plan is rejected",
        }
    }
}

/// The body of a [`MailKind::ShutdownRequest`](crate::MailKind) or
/// [`MailKind::PlanApprovalRequest`](crate::MailKind).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its id, by which it is answered; also that of the mail.
    pub request_id: MailId,
    /// Why, or the plan.
    pub text: String,
}

/// The body of a [`MailKind::ShutdownResponse`](crate::MailKind) or
/// [`MailKind::PlanApprovalResponse`](crate::MailKind).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The request that is answered.
    pub request_id: MailId,
    /// Yes or no.
    pub approve: bool,
    /// Why, or what should be different.
    pub text: String,
}

/// The body of a [`MailKind::Idle`](crate::MailKind): what a teammate has done since it was idle last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleReport {
    /// The team.
    pub team: Name,
    /// Why it does nothing.
    pub reason: IdleReason,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it said last.
    pub answer: String,
    /// The tasks that it had since, as they stand.
    pub tasks: Vec<TaskReport>,
    /// The branch of the checkout that it has for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// Why a teammate does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdleReason {
    /// It is done, and can be told more.
    Available,
    /// Somebody interrupted it.
    Interrupted,
    /// It could not go on.
    Failed,
}

impl IdleReason {
    /// The word in frames and lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

/// A task as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// The task.
    pub id: TaskId,
    /// What it is.
    pub subject: String,
    /// How far it is.
    pub status: TaskStatus,
}
