//! The server's own time. Tests put their clock here; people use the machine's, and may push it
//! ahead to see a cache entry expire.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where the server's time comes from.
pub trait Pace: Send + Sync {
    /// Time since some fixed start.
    fn now(&self) -> Duration;

    /// Ends once [`now`](Pace::now) has advanced by `duration`.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Pushes [`now`](Pace::now) ahead. Whoever sleeps on the machine's clock sleeps on.
    fn advance(&self, duration: Duration);
}

/// The machine's clock, plus what it was pushed ahead by.
#[derive(Debug)]
pub struct SystemPace {
    start: Instant,
    ahead_ms: AtomicU64,
}

impl Default for SystemPace {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            ahead_ms: AtomicU64::new(0),
        }
    }
}

impl Pace for SystemPace {
    fn now(&self) -> Duration {
        self.start.elapsed() + Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the server's clock")]
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn advance(&self, duration: Duration) {
        self.ahead_ms
            .fetch_add(duration.as_millis() as u64, Ordering::Relaxed);
    }
}
