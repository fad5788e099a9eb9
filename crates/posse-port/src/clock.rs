//! Time as a port, so that a test of a ten-minute time-out takes no ten minutes.

use std::time::{Duration, Instant, SystemTime};

use super::BoxFuture;

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// Time since some fixed start. Never goes back.
    fn now(&self) -> Duration;

    /// The calendar's time, which may jump.
    fn wall(&self) -> SystemTime;

    /// Ends once [`now`](Clock::now) has advanced by `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock port")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
