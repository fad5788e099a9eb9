//! How long things may take.

use std::time::Duration;

/// How long hosts wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A host whose heartbeat is older is stalled.
    pub lease: Duration,
    /// How often a host shows that it lives, and looks for what no bell told it.
    pub sweep: Duration,
    /// How long writing waits for its turn among the processes.
    pub patience: Duration,
    /// For tests: hears no bell and no death, so that only the sweep heals.
    pub deaf: bool,
}

impl Default for Timing {
    fn default() -> Self {
        let lease = Duration::from_secs(15);
        Self {
            lease,
            sweep: lease / 3,
            patience: Duration::from_secs(10),
            deaf: false,
        }
    }
}
