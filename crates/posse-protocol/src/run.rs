//! Runs: what sub-agents and background commands do, from their start to their end.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{AgentId, Name, PermissionMode, RawJson};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It runs, or waits for something.
    Running,
    /// It ended by itself.
    Completed,
    /// A limit stopped it; what there is is there.
    Partial,
    /// It cannot go on.
    Failed,
    /// Somebody stopped it.
    Killed,
    /// A budget or an outage stopped it for now; it can go on.
    Paused,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Running,
        Self::Completed,
        Self::Partial,
        Self::Failed,
        Self::Killed,
        Self::Paused,
    ];

    /// The word on the wire and in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Paused => "paused",
        }
    }
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// A sub-agent.
    Agent,
    /// A command in a shell.
    Shell,
}

impl RunKind {
    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Shell => "shell",
        }
    }
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunUsage {
    /// All tokens, in and out.
    pub total_tokens: u64,
    /// Tool calls.
    pub tool_uses: u32,
    /// How long it took.
    pub duration_ms: u64,
}

/// That a run is over: what its starter is told, once. The body of a mail of kind
/// [`MailKind::Notification`](crate::MailKind::Notification), whose id is `run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// What ran: the agent's id, or the command's.
    pub task: Uuid,
    /// This run of it. An agent that is revived has another.
    pub run: Uuid,
    /// The call that started it; empty if a message did.
    pub call: String,
    /// What it is.
    pub kind: RunKind,
    /// What it does, for people.
    pub description: String,
    /// Where its output is.
    pub output_file: PathBuf,
    /// How it ended.
    pub status: RunStatus,
    /// The same in a line.
    pub summary: String,
    /// What it came to; what there is of it if it was stopped.
    pub result: String,
    /// Why it failed.
    pub error: Option<String>,
    /// What it used.
    pub usage: RunUsage,
    /// The model that really answered; empty for a command.
    #[serde(default)]
    pub model: String,
    /// The answer as a value, if a shape was asked for and it has that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RawJson>,
    /// The checkout that it worked in, if it had one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeEnd>,
}

/// What became of a worktree when the run of its agent ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeEnd {
    /// Its directory.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The commit that it was made from.
    pub base: String,
    /// What is in it that is nowhere else, for which it is kept; none if there was nothing and it is removed.
    pub kept: Option<String>,
}

/// What is known of a run from its start on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFacts {
    /// The agent's id, or the command's.
    pub task: Uuid,
    /// What it is.
    pub kind: RunKind,
    /// The agent's type; empty for a command.
    pub agent_type: String,
    /// The agent's registered name.
    pub name: Option<Name>,
    /// What it does, for people.
    pub description: String,
    /// The call that started it; empty if a message did.
    pub call: String,
    /// Who started it.
    pub starter: AgentId,
    /// How deep in the tree it is; 1 for what the main agent starts.
    pub depth: u32,
    /// Where its output goes.
    pub output_file: PathBuf,
    /// Where and how the agent works; none for a command, and if only its end is known.
    pub place: Option<Box<AgentPlace>>,
}

/// Where and how an agent works when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// Its path in the tree of agents.
    pub path: String,
    /// The model's name.
    pub model: String,
    /// Its permission mode.
    pub mode: PermissionMode,
    /// Its working directory, which is in its worktree if it has one.
    pub cwd: PathBuf,
    /// The branch of its worktree, if it has one of its own.
    pub branch: Option<String>,
}

/// Something that happened to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunUpdate {
    /// The run.
    pub run: RunFacts,
    /// What happened.
    pub what: RunChange,
}

/// What can happen to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunChange {
    /// It has begun.
    Started {
        /// What it was told.
        prompt: String,
        /// Whether nobody waits for it.
        background: bool,
    },
    /// It goes on.
    Progress {
        /// What it has used so far.
        usage: RunUsage,
        /// The tool it used last.
        last_tool: Option<String>,
        /// What it is doing, in a line.
        summary: String,
    },
    /// Nobody waits for it any more; it goes on in the background.
    Detached,
    /// It is over.
    Ended(Box<Notification>),
}
