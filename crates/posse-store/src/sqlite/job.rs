//! Requests to the writer, and their answers.

use posse_port::store::{Archive, Epoch, Order, Step};
use posse_protocol::AgentId;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::write_outcome::WriteOutcome;

/// A write request.
pub(super) enum WriteRequest {
    Commit(Box<Step>),
    Operate(Box<Order>),
    Import(Box<Archive>),
    Take(AgentId),
    Release(AgentId, Epoch),
    /// Releases what a host held, if it is dead.
    Free(Uuid),
    /// Removes old rows of feeds.
    TrimFeed,
}

impl WriteRequest {
    /// Returns true if this host holds an agent because of it.
    pub(super) fn needs_host(&self) -> bool {
        match self {
            Self::Commit(step) => step.birth.is_some(),
            Self::Take(_) => true,
            Self::Operate(_)
            | Self::Import(_)
            | Self::Release(..)
            | Self::Free(_)
            | Self::TrimFeed => false,
        }
    }
}

/// A request and the channel for its answer.
pub(super) struct SqliteJob {
    pub(super) work: WriteRequest,
    pub(super) answer: oneshot::Sender<WriteOutcome>,
}
