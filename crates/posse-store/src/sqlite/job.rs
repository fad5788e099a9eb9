//! What the writer is asked to do, and what it answers.

use posse_port::store::{Archive, Epoch, Order, Step};
use posse_protocol::AgentId;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::write_outcome::WriteOutcome;

/// Something to be written.
pub(super) enum WriteRequest {
    Commit(Box<Step>),
    Operate(Box<Order>),
    Import(Box<Archive>),
    Take(AgentId),
    Release(AgentId, Epoch),
    /// Sets free what a host held, if it is dead.
    Free(Uuid),
}

impl WriteRequest {
    /// Returns true if a host holds an agent because of it.
    pub(super) fn needs_host(&self) -> bool {
        match self {
            Self::Commit(step) => step.birth.is_some(),
            Self::Take(_) => true,
            Self::Operate(_) | Self::Import(_) | Self::Release(..) | Self::Free(_) => false,
        }
    }
}

/// Work, and who waits for it.
pub(super) struct SqliteJob {
    pub(super) work: WriteRequest,
    pub(super) answer: oneshot::Sender<WriteOutcome>,
}
