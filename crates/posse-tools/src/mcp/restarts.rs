//! How often and how soon a server is started anew.

use std::collections::VecDeque;
use std::time::Duration;

/// How long a restart is remembered.
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// How many restarts there are in that time.
pub(super) const MOST_RESTARTS: usize = 5;
/// How long after its end a server is started anew the first time. Doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The restarts of a server.
#[derive(Debug, Default)]
pub(super) struct Restarts(VecDeque<Duration>);

impl Restarts {
    /// Returns how long to wait before the next one; none if there were too many.
    pub(super) fn next(&mut self, now: Duration, ended: Duration) -> Option<Duration> {
        while self.0.front().is_some_and(|at| now >= *at + WINDOW) {
            self.0.pop_front();
        }
        if self.0.len() >= MOST_RESTARTS {
            return None;
        }
        let ready = ended + pause(self.0.len());
        self.0.push_back(now);
        Some(ready.saturating_sub(now))
    }
}

/// Returns how long to wait after so many failures.
pub(super) fn pause(failures: usize) -> Duration {
    FIRST_PAUSE * (1 << failures.min(MOST_RESTARTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn pauses_double_until_there_were_too_many() {
        let mut restarts = Restarts::default();
        assert_eq!(restarts.next(at(0), at(0)), Some(at(1)));
        assert_eq!(restarts.next(at(1), at(1)), Some(at(2)));
        // A call that comes later waits less.
        assert_eq!(restarts.next(at(6), at(3)), Some(at(1)));
        assert_eq!(restarts.next(at(60), at(10)), Some(at(0)));
        assert_eq!(restarts.next(at(61), at(61)), Some(at(16)));
        assert_eq!(restarts.next(at(100), at(100)), None);
        assert_eq!(restarts.next(at(599), at(100)), None);
        assert_eq!(restarts.next(at(600), at(600)), Some(at(16)));
        assert_eq!(restarts.next(at(600), at(600)), None);
        assert_eq!(restarts.next(at(2000), at(2000)), Some(at(1)));
    }
}
