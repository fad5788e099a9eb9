//! Time limits of the store.

use std::time::Duration;

/// How long hosts wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Age of a heartbeat after which its host counts as stalled.
    pub lease: Duration,
    /// Interval of heartbeats, and of queries for what no notification reported.
    pub sweep: Duration,
    /// Time that writing waits for its turn among the processes.
    pub patience: Duration,
    /// Age at which rows of the feed are removed.
    pub feed_age: Duration,
    /// For tests: ignores notifications and deaths, so that only the sweep finds them.
    pub deaf: bool,
}

impl Default for Timing {
    fn default() -> Self {
        let lease = Duration::from_secs(15);
        Self {
            lease,
            // Two heartbeats may be late or lost before the lease expires.
            sweep: lease / 3,
            patience: Duration::from_secs(10),
            feed_age: Duration::from_secs(72 * 60 * 60),
            deaf: false,
        }
    }
}
