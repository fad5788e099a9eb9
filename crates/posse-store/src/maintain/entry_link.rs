//! How the entries of a history hang together, whichever the engine.

/// What an entry is to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryLink {
    /// The next one, as it was written, with this checksum.
    Whole(u64),
    /// What it begins with is not there.
    Headless,
    /// Another one, or changed.
    Broken,
}
