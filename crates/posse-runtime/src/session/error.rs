//! Why a spawn was refused. Each message is shown to the model that asked for the agent.

use posse_permission::RuleError;
use posse_port::store::{Refusal, StoreError};
use posse_protocol::{AgentId, Name};

use crate::session::limits::LimitError;
use crate::session::route::RouteError;
use crate::session::workspace::WorkspaceError;

/// Why a spawn was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error(transparent)]
    Route(#[from] RouteError),
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Rule(#[from] RuleError),
    #[error("{0}")]
    Terms(#[from] serde_json::Error),
    #[error("{0}")]
    Hook(String),
    #[error("subagent_type: {kind} needs MCP servers that are not connected: {servers}")]
    Servers { kind: String, servers: String },
    #[error("You are a fork: forks cannot start agents; do the work yourself.")]
    Fork,
    #[error("the agent that starts it has ended")]
    StarterEnded,
    #[error("nothing more can be started: the agent is being stopped")]
    Stopped,
    #[error("the reply that asked for the fork has ended")]
    ReplyEnded,
    /// The agent ended before its first step was stored.
    #[error("{0}")]
    Unborn(String),
    #[error("it does not join a team")]
    NoTeam,
    #[error("{0}")]
    Refused(Refusal),
    #[error("the store did not report whether it joined")]
    Unreported,
    #[error("isolation: {0}")]
    Worktree(String),
    #[error("cwd: {0}")]
    Outside(String),
    #[error(
        "name: {name} belongs to agent {agent} of this session; write to it with SendMessage, or choose another name"
    )]
    NameOfAgent { name: Name, agent: AgentId },
    #[error(
        "name: {name} is or was a member of team {team}, and cannot be reused; choose another name"
    )]
    NameOfMember { name: Name, team: Name },
}
