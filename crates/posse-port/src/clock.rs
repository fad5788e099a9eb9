//! Time as a port, so that tests of long time-outs run instantly.

use std::time::{Duration, Instant, SystemTime};

use super::BoxFuture;

/// A source of time.
pub trait Clock: Send + Sync {
    /// Returns the time since some fixed start; monotonic.
    fn now(&self) -> Duration;

    /// Returns the wall-clock time, which may jump.
    fn wall(&self) -> SystemTime;

    /// Completes once [`now`](Clock::now) has advanced by `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's clock.
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
