//! Wakes an agent up when something waits for it. Wake-ups that come together are merged.
//!
//! A wake-up carries no data: the agent looks at the store or the registry itself. So none can be
//! stale, and one too many does no harm.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// Why an agent is woken; each value is a bit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// Mail waits in its inbox.
    Mail = 1,
    /// Something that it started has ended.
    Settle = 2,
    /// Nobody can answer questions any more.
    Unattended = 4,
    /// There may be a task for it.
    Tasks = 8,
    /// Its session was halted.
    Halted = 16,
    /// Somebody has begun to watch it.
    Watched = 32,
    /// A question was left for it to ask, or needs no answer any more.
    Asks = 64,
}

/// Pending wake-ups of one agent.
#[derive(Debug, Default)]
pub(crate) struct Wakeup {
    raised: AtomicU8,
    notify: Notify,
}

/// Reasons for which an agent was woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WakeReasons(u8);

impl WakeReasons {
    /// Returns true if `what` is among the reasons.
    pub(crate) fn about(self, what: WakeReason) -> bool {
        self.0 & what as u8 != 0
    }
}

impl Wakeup {
    /// Wakes the agent.
    pub(crate) fn raise(&self, what: WakeReason) {
        self.raised.fetch_or(what as u8, Ordering::AcqRel);
        // After the bit is set. If the agent does not wait yet, the permit makes its next wait end
        // at once.
        self.notify.notify_one();
    }

    /// Returns true if the agent was woken for this reason and has not looked yet.
    pub(crate) fn is_raised(&self, what: WakeReason) -> bool {
        WakeReasons(self.raised.load(Ordering::Acquire)).about(what)
    }

    /// Waits for the next wake-up. Safe to drop: no wake-up is lost.
    pub(crate) async fn raised(&self) -> WakeReasons {
        loop {
            match self.raised.swap(0, Ordering::AcqRel) {
                0 => self.notify.notified().await,
                raised => return WakeReasons(raised),
            }
        }
    }
}
