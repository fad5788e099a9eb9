//! Mail: what agents and people send to agents.

use serde::{Deserialize, Serialize};

use crate::{AgentId, MailId};

/// A message in an agent's inbox. Sender and kind are set by the runtime, never read from the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// Its id.
    pub id: MailId,
    /// Its number in the recipient's inbox, from 1. What one sender sends keeps its order.
    pub number: u64,
    /// Who gets it.
    pub to: AgentId,
    /// Who sent it.
    pub from: Sender,
    /// What it is.
    pub kind: MailKind,
    /// In a few words, for people.
    pub summary: String,
    /// The text; of other kinds than [`MailKind::Text`], JSON.
    pub body: String,
    /// When it was committed, in milliseconds of Unix time.
    pub sent_ms: i64,
    /// The entry of the recipient's transcript that shows it to the model; none while it waits.
    pub shown_in: Option<u64>,
}

/// Who sent a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// The person.
    User,
    /// An agent.
    Agent {
        /// Its id.
        id: AgentId,
        /// What it is called: its name in the team, else its path.
        name: String,
    },
}

impl Sender {
    /// What the sender is called.
    pub fn name(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Agent { name, .. } => name,
        }
    }
}

/// What a message is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// Words.
    #[default]
    Text,
    /// A teammate is asked to end.
    ShutdownRequest,
    /// Whether it will.
    ShutdownResponse,
    /// A plan that wants approval.
    PlanApprovalRequest,
    /// Whether it got it.
    PlanApprovalResponse,
    /// A teammate has nothing to do.
    Idle,
    /// A run that the recipient started is over: a [`Notification`](crate::Notification).
    Notification,
    /// A teammate must stop what it does, and becomes idle.
    Interruption,
    /// A teammate must end at once. Nothing shows it to a model.
    Dismissal,
}

impl MailKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Text,
        Self::ShutdownRequest,
        Self::ShutdownResponse,
        Self::PlanApprovalRequest,
        Self::PlanApprovalResponse,
        Self::Idle,
        Self::Notification,
        Self::Interruption,
        Self::Dismissal,
    ];

    /// The word on the wire and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::ShutdownRequest => "shutdown_request",
            Self::ShutdownResponse => "shutdown_response",
            Self::PlanApprovalRequest => "plan_approval_request",
            Self::PlanApprovalResponse => "plan_approval_response",
            Self::Idle => "idle",
            Self::Notification => "notification",
            Self::Interruption => "interruption",
            Self::Dismissal => "dismissal",
        }
    }
}
