//! The key of a tool call.

/// A tool call, identified by its reply and its position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// The entry number of the reply.
    pub seq: u64,
    /// The index among its calls, from 0.
    pub ordinal: u32,
}
