//! What a host is in the eyes of others, whichever the engine.

/// The state of a host's row, by which others know that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostStatus {
    /// It has no row yet.
    Stranger = 0,
    /// It has a row.
    Settled = 1,
    /// Its row is gone: others took it for dead.
    Lost = 2,
}
