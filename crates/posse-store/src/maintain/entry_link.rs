//! How the entries of a history are chained, the same for both engines.

/// What a check finds when it compares an entry with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryLink {
    /// The entry is the next one and unchanged, with this checksum.
    Whole(u64),
    /// The shared content that the entry begins with is missing.
    Headless,
    /// The entry is not the next one, or its bytes have changed.
    Broken,
}
