//! How much of a history is read, the same for both engines.

/// The part of a history that a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The whole history.
    All,
    /// The part that is still sent to the model: from the agent's last compaction, if it has one.
    Sent,
}
