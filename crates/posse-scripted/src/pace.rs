//! The server's own clock. Tests supply theirs; people use the machine's, and may advance it to
//! see a cache entry expire.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The source of the server's time.
pub trait Pace: Send + Sync {
    /// Returns the time since a fixed start.
    fn now(&self) -> Duration;

    /// Returns the time of day, which advances with [`now`](Pace::now).
    fn wall(&self) -> SystemTime;

    /// Completes once [`now`](Pace::now) has advanced by `duration`.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Advances [`now`](Pace::now). Sleeps on the machine's clock are not shortened.
    fn advance(&self, duration: Duration);
}

/// The machine's clock, plus what it was advanced by.
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

impl SystemPace {
    fn ahead(&self) -> Duration {
        Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed))
    }
}

impl Pace for SystemPace {
    fn now(&self) -> Duration {
        self.start.elapsed() + self.ahead()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now() + self.ahead()
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
