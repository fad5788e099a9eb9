//! How the entries of a history are chained, the same for both engines.

/// What a check finds when it compares an entry with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryLink {
    /// The entry is the next one and unchanged, with this checksum.
    Whole(u64),
    /// A shared content of the entry is missing: this one.
    Lacks(&'static str),
    /// The entry is not the next one, or its bytes have changed.
    Broken,
}

/// What an entry begins with.
pub(crate) const HEAD: &str = "what it begins with";
/// The definitions of tools that an entry brings.
pub(crate) const LOADED: &str = "what it loads";
