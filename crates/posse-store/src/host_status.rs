//! Whether a host has its row in the store, the same for both engines.

/// The state of a host's row, by which others know that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostStatus {
    /// It has no row yet, because it never held an agent.
    Stranger = 0,
    /// It has a row.
    Settled = 1,
    /// Its row is gone: others took it for dead, and everything it holds was given up.
    Lost = 2,
}
