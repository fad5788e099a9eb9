//! The writer's answers, the same for both engines.

use posse_port::store::{Committed, Epoch, StoreError};

/// The result of a write.
#[derive(Debug, Default)]
pub(crate) struct WriteAnswer {
    /// The new epoch, for a take.
    pub(crate) epoch: Epoch,
    /// The result of a step; for an order only the operations' results.
    pub(crate) committed: Committed,
}

/// The answer to a caller of the writer.
pub(crate) type WriteOutcome = Result<WriteAnswer, StoreError>;
