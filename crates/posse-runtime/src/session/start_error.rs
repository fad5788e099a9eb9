//! Why an agent could not be started.

use posse_port::store::StoreError;
use posse_protocol::AgentId;

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This runtime has it already.
    #[error("agent {agent} is already running in this process")]
    AlreadyHere {
        /// The agent.
        agent: AgentId,
    },
    /// Where it worked cannot be worked in.
    #[error("{0}")]
    Place(String),
    /// The session was held in another provider's words.
    #[error("this session was recorded with the {stored} API and cannot be resumed with {asked}")]
    OtherDialect {
        /// What it was held in.
        stored: String,
        /// What was asked for.
        asked: &'static str,
    },
}
