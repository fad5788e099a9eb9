//! One rate limit as a token bucket that refills continuously: full after a minute.

use std::time::Duration;

use posse_port::model::Allowance;

/// Time in which providers refill a bucket.
const MINUTE: f64 = 60.0;
/// Absorbs rounding: a bucket that is short by this little is not short.
const ROUNDING: f64 = 1e-6;

/// A limit per minute, and what is left of it. Without a limit it is never short.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Limit that a person has set.
    configured: Option<u64>,
    /// Limit that the provider has told.
    learned: Option<u64>,
    /// What is left; below zero if more was used than was left.
    level: f64,
    /// Time for which `level` holds.
    at: Duration,
    /// The latest admission whose response has told what is left.
    told_at: Option<u64>,
}

impl Bucket {
    /// Returns a full bucket.
    pub(super) fn new(configured: Option<u64>) -> Self {
        let configured = configured.filter(|limit| *limit > 0);
        Self {
            configured,
            level: configured.unwrap_or(0) as f64,
            ..Self::default()
        }
    }

    /// Returns the limit that applies: the lower one.
    fn limit(&self) -> Option<f64> {
        let lower = match (self.configured, self.learned) {
            (Some(configured), Some(learned)) => configured.min(learned),
            (configured, learned) => configured.or(learned)?,
        };
        Some(lower as f64)
    }

    fn refill(&mut self, now: Duration) {
        if let Some(limit) = self.limit() {
            let passed = now.saturating_sub(self.at).as_secs_f64();
            self.level = (self.level + passed * limit / MINUTE).min(limit);
        }
        self.at = self.at.max(now);
    }

    /// Returns how long it takes until `need` is there; zero if it is there now. A need above the
    /// limit waits for a full bucket.
    pub(super) fn short_for(&mut self, now: Duration, need: f64) -> Duration {
        self.refill(now);
        let Some(limit) = self.limit() else {
            return Duration::ZERO;
        };
        let missing = need.min(limit) - self.level;
        if missing <= ROUNDING {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(missing * MINUTE / limit) + Duration::from_micros(1)
    }

    /// Takes `amount`, or gives it back if it is negative.
    pub(super) fn take(&mut self, now: Duration, amount: f64) {
        self.refill(now);
        if let Some(limit) = self.limit() {
            self.level = (self.level - amount).clamp(-limit, limit);
        }
    }

    /// Takes over what a response to the given admission tells. The provider counted `age` ago, and
    /// without the `uncounted` that was sent since. A response that is older than what is known
    /// tells nothing.
    pub(super) fn told(
        &mut self,
        now: Duration,
        admission: u64,
        allowance: Allowance,
        age: Duration,
        uncounted: f64,
    ) {
        if allowance.limit == 0 || self.told_at.is_some_and(|latest| admission < latest) {
            return;
        }
        self.refill(now);
        self.told_at = Some(admission);
        self.learned = Some(allowance.limit);
        let refilled = age.as_secs_f64() * allowance.limit as f64 / MINUTE;
        let left = allowance.remaining as f64 + refilled - uncounted;
        // A configured limit that is lower is kept, whatever the provider would give.
        self.level = match self.counts_itself() {
            true => left.min(self.level),
            false => left,
        };
        let limit = self.limit().unwrap_or_default();
        self.level = self.level.clamp(-limit, limit);
    }

    /// Takes in that a request was one too many, though it has taken `need`: there is less left
    /// than was believed. Of no use if the provider has told what is left.
    pub(super) fn refused(
        &mut self,
        now: Duration,
        admission: u64,
        need: f64,
        retry_after: Option<Duration>,
    ) {
        self.refill(now);
        if let Some(limit) = self
            .limit()
            .filter(|_| self.counts_itself() || !self.is_told(admission))
        {
            let missing = retry_after.map_or(need, |wait| wait.as_secs_f64() * limit / MINUTE);
            self.level = self.level.min(-missing).max(-limit);
        }
    }

    /// Returns true if a configured limit applies that is below the provider's: what the provider
    /// tells is about its own.
    pub(super) fn counts_itself(&self) -> bool {
        matches!((self.configured, self.learned), (Some(own), Some(told)) if own < told)
    }

    /// Returns true if the provider has told what is left after it received the given admission.
    pub(super) fn is_told(&self, admission: u64) -> bool {
        self.told_at.is_some_and(|latest| admission <= latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn allowance(limit: u64, remaining: u64) -> Allowance {
        Allowance {
            limit,
            remaining,
            reset_at_ms: None,
        }
    }

    #[test]
    fn it_refills_in_a_minute_and_is_corrected_by_the_provider() {
        let mut bucket = Bucket::new(None);
        assert_eq!(bucket.short_for(SECOND, 1e9), Duration::ZERO);
        bucket.told(SECOND, 1, allowance(60, 3), Duration::ZERO, 1.0);
        assert_eq!(bucket.short_for(SECOND, 2.0), Duration::ZERO);
        bucket.take(SECOND, 2.0);
        let wait = bucket.short_for(SECOND, 2.0);
        assert_eq!(wait.as_millis(), 2000);
        assert_eq!(
            bucket.short_for(3 * SECOND + SECOND / 1000, 2.0),
            Duration::ZERO
        );
        // It is older.
        bucket.told(3 * SECOND, 0, allowance(60, 60), Duration::ZERO, 0.0);
        assert!(bucket.short_for(3 * SECOND, 3.0) > Duration::ZERO);
        // More than the limit waits for a full bucket, not for ever.
        assert_eq!(bucket.short_for(120 * SECOND, 500.0), Duration::ZERO);
    }

    #[test]
    fn a_configured_limit_that_is_lower_is_kept() {
        let mut bucket = Bucket::new(Some(6));
        bucket.take(Duration::ZERO, 6.0);
        bucket.told(Duration::ZERO, 1, allowance(60, 60), Duration::ZERO, 0.0);
        assert_eq!(bucket.short_for(Duration::ZERO, 1.0).as_secs(), 10);
    }
}
