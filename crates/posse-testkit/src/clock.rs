//! A clock that advances only when told to.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use posse_port::BoxFuture;
use posse_port::clock::Clock;
use posse_scripted::Pace;
use tokio::sync::{oneshot, watch};

/// A clock for tests. Clones are the same clock.
#[derive(Clone, Default)]
pub struct TestClock(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    now: Duration,
    next: u64,
    sleepers: BTreeMap<(Duration, u64), Sleeper>,
}

struct Sleeper {
    asked: Duration,
    wake: oneshot::Sender<()>,
}

impl TestClock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances time and wakes the sleepers that are due.
    pub fn advance(&self, duration: Duration) {
        let mut state = self.state();
        state.now += duration;
        let after = state.now + Duration::from_nanos(1);
        let later = state.sleepers.split_off(&(after, 0));
        let due = std::mem::replace(&mut state.sleepers, later);
        drop(state);
        for sleeper in due.into_values() {
            // The sleeper may have been dropped meanwhile.
            let _ = sleeper.wake.send(());
        }
    }

    /// Completes once somebody sleeps for exactly `asked`.
    pub async fn asleep_for(&self, asked: Duration) {
        self.many_asleep_for(asked, 1).await;
    }

    /// Completes once `count` sleepers sleep for exactly `asked`.
    pub async fn many_asleep_for(&self, asked: Duration, count: usize) {
        let mut changed = self.0.changed.subscribe();
        let asleep = || {
            self.state()
                .sleepers
                .values()
                .filter(|sleeper| sleeper.asked == asked)
                .count()
        };
        while asleep() < count {
            // The sender lives as long as the clock.
            let _ = changed.changed().await;
        }
    }

    /// Wakes sleepers one after another, each at its time, for ever; sleepers for one of the
    /// `spared` durations wake only once time has advanced past them by other means.
    pub async fn run_sparing(&self, spared: &[Duration]) {
        let mut changed = self.0.changed.subscribe();
        loop {
            changed.borrow_and_update();
            let next = {
                let state = self.state();
                let due = state
                    .sleepers
                    .iter()
                    .find(|(_, sleeper)| !spared.contains(&sleeper.asked));
                due.map(|((at, _), _)| at.saturating_sub(state.now))
            };
            match next {
                Some(wait) => {
                    self.advance(wait);
                    tokio::task::yield_now().await;
                }
                None => {
                    // The sender lives as long as the clock.
                    let _ = changed.changed().await;
                }
            }
        }
    }

    fn register(&self, asked: Duration) -> BoxFuture<'static, ()> {
        if asked.is_zero() {
            return Box::pin(std::future::ready(()));
        }
        let (wake, woken) = oneshot::channel();
        let mut state = self.state();
        let key = (state.now + asked, state.next);
        state.next += 1;
        state.sleepers.insert(key, Sleeper { asked, wake });
        drop(state);
        self.0.changed.send_replace(());
        let guard = Registered {
            clock: self.clone(),
            key,
        };
        Box::pin(async move {
            let _guard = guard;
            // An error would mean that the clock is gone; then nobody waits for time any more.
            let _ = woken.await;
        })
    }
}

/// Removes a sleeper from the list when its future is dropped.
struct Registered {
    clock: TestClock,
    key: (Duration, u64),
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.clock.state().sleepers.remove(&self.key);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Duration {
        self.state().now
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_700_800) + self.state().now
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.register(duration)
    }
}

impl Pace for TestClock {
    fn now(&self) -> Duration {
        self.state().now
    }

    fn wall(&self) -> SystemTime {
        Clock::wall(self)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.register(duration)
    }

    fn advance(&self, duration: Duration) {
        Self::advance(self, duration);
    }
}
