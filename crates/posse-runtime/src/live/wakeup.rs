//! A nudge: tells an agent that something waits for it. Nudges that come together are one.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// What an agent can be nudged about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// Mail waits in its inbox.
    Mail = 1,
    /// Something that it has started is over.
    Settle = 2,
    /// Nobody can answer questions any more.
    Unattended = 4,
    /// There may be a task for it.
    Tasks = 8,
}

/// Nudges of one agent.
#[derive(Debug, Default)]
pub(crate) struct Wakeup {
    raised: AtomicU8,
    notify: Notify,
}

/// What an agent was nudged about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WakeReasons(u8);

impl WakeReasons {
    pub(crate) fn about(self, what: WakeReason) -> bool {
        self.0 & what as u8 != 0
    }
}

impl Wakeup {
    pub(crate) fn raise(&self, what: WakeReason) {
        self.raised.fetch_or(what as u8, Ordering::AcqRel);
        self.notify.notify_one();
    }

    /// Whether it was nudged and has not looked yet.
    pub(crate) fn is_raised(&self, what: WakeReason) -> bool {
        WakeReasons(self.raised.load(Ordering::Acquire)).about(what)
    }

    /// Waits for the next nudge. Dropped before it ends, it loses none.
    pub(crate) async fn raised(&self) -> WakeReasons {
        loop {
            match self.raised.swap(0, Ordering::AcqRel) {
                0 => self.notify.notified().await,
                raised => return WakeReasons(raised),
            }
        }
    }
}
