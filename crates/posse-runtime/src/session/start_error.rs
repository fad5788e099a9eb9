//! Why an agent could not be started.

use posse_port::store::StoreError;
use posse_protocol::AgentId;

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The agent already lives in this runtime.
    #[error("agent {agent} is already running in this process")]
    AlreadyHere {
        /// The agent.
        agent: AgentId,
    },
    /// Its working directory or worktree cannot be used.
    #[error("{0}")]
    Place(String),
    /// The transcript is encoded for another provider.
    #[error("this session was recorded with the {stored} API and cannot be resumed with {asked}")]
    OtherDialect {
        /// Dialect of the transcript.
        stored: String,
        /// Dialect of this process.
        asked: &'static str,
    },
    /// The history cannot be cut there.
    #[error("the conversation cannot be branched after entry {at}: {why}")]
    Cut {
        /// The entry after which it was to be cut.
        at: u64,
        /// The reason, and where it could be cut.
        why: String,
    },
}
