//! How much of a history is read, whichever the engine.

/// How much of a history is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All there is.
    All,
    /// What is still sent: from the last own compaction on, if there is one.
    Sent,
}
