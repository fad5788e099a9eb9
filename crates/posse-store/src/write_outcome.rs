//! What a writer answers, whichever the engine.

use posse_port::store::{Committed, Epoch, StoreError};

/// The result of a write.
#[derive(Debug, Default)]
pub(crate) struct WriteAnswer {
    /// Of a take.
    pub(crate) epoch: Epoch,
    /// Of a step; of an order the results alone.
    pub(crate) committed: Committed,
}

/// What a caller of the writer is answered.
pub(crate) type WriteOutcome = Result<WriteAnswer, StoreError>;
