//! What the threads of one store share with the value that callers hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::write_gate::WriteGate;
use crate::wake::Waker;

#[derive(Default)]
pub(super) struct SharedState {
    /// What this host is to be told.
    pub(super) waker: Arc<Waker>,
    /// What holds the writer back.
    pub(super) gate: WriteGate,
    /// In nanoseconds.
    longest_wait: AtomicU64,
}

impl SharedState {
    /// Notes how long a batch has waited for its turn.
    pub(super) fn waited(&self, wait: Duration) {
        let nanoseconds = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.longest_wait.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the longest that a batch has waited for its turn.
    pub(super) fn longest_wait(&self) -> Duration {
        Duration::from_nanos(self.longest_wait.load(Ordering::Relaxed))
    }
}
