//! Tasks: what a team, or a session without one, has to do.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AgentId, Name, RealmId};

/// A list of tasks: a team's, or the session's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ListId {
    /// The realm it belongs to.
    pub realm: RealmId,
    /// The team; none for the list of the session.
    pub team: Option<Name>,
}

/// The number of a task in its list: from 1, counting up, never used again.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TaskId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub subject: String,
    /// The same at length.
    pub description: String,
    /// The subject while it is being done: `Fixing the parser`.
    pub active_form: Option<String>,
    /// How far it is.
    pub status: TaskStatus,
    /// Who does it, or is to do it.
    pub owner: Option<Owner>,
    /// Who was doing it and went before it was done: their process ended, or they left the team. Gone
    /// when somebody else has it, or it is done.
    pub lost_by: Option<String>,
    /// What must be done before it, in order.
    pub blocked_by: Vec<TaskId>,
    /// Those of `blocked_by` that are neither completed nor deleted.
    pub waits_for: Vec<TaskId>,
    /// What waits for it, in order; derived from the `blocked_by` of the others.
    pub blocks: Vec<TaskId>,
    /// When it was made, in milliseconds of Unix time.
    pub created_ms: i64,
    /// When it was last changed.
    pub updated_ms: i64,
    /// Who may take it by itself: those whose role takes this word. Anybody if absent.
    pub role: Option<String>,
    /// The command that must pass before an agent can complete it.
    pub check: Option<String>,
    /// Whatever else is to be kept with it.
    pub metadata: Map<String, Value>,
    /// How often it has been changed; 1 when new.
    pub version: u64,
}

/// Which tasks somebody takes without being told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Takes {
    /// All of them.
    #[default]
    Any,
    /// Some of them.
    Only {
        /// Whether those that are not marked for a role.
        unmarked: bool,
        /// Those that are marked with one of these words.
        roles: Vec<String>,
    },
}

/// Who does a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The agent; none for a person, or a member that has no agent.
    pub agent: Option<AgentId>,
    /// What it is called.
    pub name: String,
}

/// How far a task is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
    /// Not to be done. The task stays, so that its number does.
    Deleted,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [
        Self::Pending,
        Self::InProgress,
        Self::Completed,
        Self::Deleted,
    ];

    /// The word in tools and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Deleted => "deleted",
        }
    }

    /// Whether whoever waits for it need not wait any more.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Completed | Self::Deleted)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
