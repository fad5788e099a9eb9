//! A token bucket with continuous refill. All arithmetic is exact.

use std::time::Duration;

/// Units of a level per token: a limit of one token a minute adds one unit each nanosecond.
const UNITS: i128 = 60_000_000_000;

/// Time to wait for more tokens than the bucket can hold. No wait is long enough.
const HOPELESS: Duration = Duration::from_secs(60);

/// A token bucket. It starts full. Taking more than it holds leaves a debt.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    per_minute: u64,
    capacity: u64,
    /// The level at `at`, in units.
    level: i128,
    at: Duration,
    started: Duration,
    taken: u64,
}

impl TokenBucket {
    /// Returns a full bucket that holds `capacity` tokens and gains `per_minute` a minute.
    pub fn new(now: Duration, per_minute: u64, capacity: u64) -> Self {
        Self {
            per_minute,
            capacity,
            level: units(capacity),
            at: now,
            started: now,
            taken: 0,
        }
    }

    /// Returns the time until the bucket holds `tokens`; none if it holds them now.
    pub fn wait_for(&self, now: Duration, tokens: u64) -> Option<Duration> {
        let missing = units(tokens) - self.level_at(now);
        if missing <= 0 {
            None
        } else if tokens > self.capacity {
            Some(HOPELESS)
        } else {
            Some(self.time_to_gain(missing))
        }
    }

    /// Takes tokens, even those that are not there.
    pub fn take(&mut self, now: Duration, tokens: u64) {
        self.level = self.level_at(now) - units(tokens);
        self.at = self.at.max(now);
        self.taken = self.taken.saturating_add(tokens);
    }

    /// Returns the whole tokens that are left, or below zero the tokens that are owed.
    pub fn level(&self, now: Duration) -> i64 {
        clamped(self.level_at(now).div_euclid(UNITS))
    }

    /// Returns the time until the bucket is full again.
    pub fn full_in(&self, now: Duration) -> Duration {
        self.time_to_gain(units(self.capacity) - self.level_at(now))
    }

    /// Returns the tokens that were ever taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the tokens that could have been taken since the start.
    pub fn allowed(&self, now: Duration) -> u64 {
        let gained = self.gain(now.saturating_sub(self.started));
        let allowed = (units(self.capacity) + gained) / UNITS;
        u64::try_from(allowed).unwrap_or(u64::MAX)
    }

    /// Returns the tokens it gains in a minute.
    pub fn per_minute(&self) -> u64 {
        self.per_minute
    }

    /// Returns the tokens it can hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    fn level_at(&self, now: Duration) -> i128 {
        let gained = self.gain(now.saturating_sub(self.at));
        (self.level + gained).min(units(self.capacity))
    }

    fn gain(&self, elapsed: Duration) -> i128 {
        let nanos = i128::try_from(elapsed.as_nanos()).unwrap_or(i128::MAX);
        // Halved, so that a level can still be added to it.
        nanos
            .saturating_mul(self.per_minute.into())
            .min(i128::MAX / 2)
    }

    /// Returns the time in which `missing` units are gained, rounded up to a nanosecond.
    fn time_to_gain(&self, missing: i128) -> Duration {
        let rate = i128::from(self.per_minute.max(1));
        let nanos = (missing.max(0) + rate - 1) / rate;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

fn units(tokens: u64) -> i128 {
    i128::from(tokens) * UNITS
}

fn clamped(value: i128) -> i64 {
    let most = if value < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(value).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NANO: Duration = Duration::from_nanos(1);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_token_returns_exactly_at_its_moment() {
        let mut bucket = TokenBucket::new(at(5), 50, 50);
        assert_eq!(bucket.wait_for(at(5), 50), None);
        assert_eq!(bucket.full_in(at(5)), Duration::ZERO);
        bucket.take(at(5), 50);
        assert_eq!(bucket.wait_for(at(5), 1), Some(at(1_200)));
        assert_eq!(bucket.wait_for(at(1_205) - NANO, 1), Some(NANO));
        assert_eq!(bucket.wait_for(at(1_205), 1), None);
        assert_eq!(
            [
                bucket.level(at(1_205) - NANO),
                bucket.level(at(1_205)),
                bucket.level(at(99_999_999)),
            ],
            [0, 1, 50],
            "never more than it holds"
        );
        assert_eq!(bucket.full_in(at(5)), at(60_000));
    }

    #[test]
    fn a_wait_that_is_no_whole_number_of_nanoseconds_is_rounded_up() {
        let mut bucket = TokenBucket::new(Duration::ZERO, 7, 7);
        bucket.take(Duration::ZERO, 7);
        let wait = Duration::from_nanos(8_571_428_572);
        assert_eq!(bucket.wait_for(Duration::ZERO, 1), Some(wait));
        assert_eq!(bucket.wait_for(wait, 1), None);
        assert_eq!(bucket.wait_for(wait - NANO, 1), Some(NANO));
    }

    #[test]
    fn a_small_burst_refills_at_the_full_rate() {
        let mut bucket = TokenBucket::new(Duration::ZERO, 3_000, 10);
        bucket.take(Duration::ZERO, 10);
        assert_eq!(bucket.wait_for(Duration::ZERO, 1), Some(at(20)));
        assert_eq!(bucket.full_in(Duration::ZERO), at(200));
        assert_eq!(bucket.wait_for(Duration::ZERO, 11), Some(HOPELESS));
        assert_eq!(bucket.wait_for(at(999), 11), Some(HOPELESS));
        assert_eq!(bucket.allowed(at(60_000)), 3_010);
    }

    #[test]
    fn a_debt_is_paid_back_first() {
        let mut bucket = TokenBucket::new(Duration::ZERO, 60, 60);
        bucket.take(Duration::ZERO, 90);
        assert_eq!(bucket.level(Duration::ZERO), -30);
        assert_eq!(bucket.level(at(500)), -30, "rounded down");
        assert_eq!(bucket.wait_for(Duration::ZERO, 1), Some(at(31_000)));
        assert_eq!(bucket.full_in(Duration::ZERO), at(90_000));
        assert_eq!(bucket.taken(), 90);
    }

    #[test]
    fn a_clock_that_steps_back_gives_nothing() {
        let mut bucket = TokenBucket::new(at(1_000), 60, 1);
        bucket.take(at(1_000), 1);
        assert_eq!(bucket.level(at(0)), 0);
        bucket.take(at(500), 0);
        assert_eq!(bucket.wait_for(at(1_000), 1), Some(at(1_000)));
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let end = Duration::from_secs(u64::MAX);
        let mut bucket = TokenBucket::new(Duration::ZERO, 1_000_000_000_000, 1_000_000_000_000);
        bucket.take(Duration::ZERO, u64::MAX);
        assert_eq!(bucket.level(end), 1_000_000_000_000);
        assert_eq!(bucket.allowed(end), u64::MAX);
    }

    /// Returns true if every window that ends now has room for `tokens` more: the definition of
    /// a token bucket without a level.
    fn every_window_has_room(
        taken: &[(Duration, u64)],
        now: Duration,
        tokens: u64,
        limits: [u64; 2],
    ) -> bool {
        let [per_minute, capacity] = limits.map(u128::from);
        (0..=taken.len()).all(|first| {
            let window = &taken[first..];
            let start = window.first().map_or(now, |(at, _)| *at);
            let sum: u64 = window.iter().map(|(_, tokens)| tokens).sum();
            let minute = 60_000_000_000;
            u128::from(sum + tokens) * minute
                <= capacity * minute + per_minute * (now - start).as_nanos()
        })
    }

    proptest! {
        #[test]
        fn it_admits_what_every_window_has_room_for(
            per_minute in 1_u64..200,
            capacity in 1_u64..30,
            asks in proptest::collection::vec((0_u64..3_000_000_000, any::<bool>(), 1_u64..12), 1..120),
        ) {
            let mut bucket = TokenBucket::new(Duration::ZERO, per_minute, capacity);
            let (mut now, mut taken) = (Duration::ZERO, Vec::new());
            for (pause, to_the_boundary, tokens) in asks {
                now += Duration::from_nanos(pause);
                // Half of them come at the very nanosecond at which they fit.
                if let (true, Some(wait)) = (to_the_boundary, bucket.wait_for(now, tokens)) {
                    if tokens <= capacity {
                        prop_assert!(!every_window_has_room(&taken, now + wait - NANO, tokens, [per_minute, capacity]));
                    }
                    now += wait;
                }
                let fits = bucket.wait_for(now, tokens).is_none();
                prop_assert_eq!(fits, every_window_has_room(&taken, now, tokens, [per_minute, capacity]));
                if fits {
                    bucket.take(now, tokens);
                    taken.push((now, tokens));
                }
                prop_assert!(bucket.taken() <= bucket.allowed(now));
            }
        }
    }
}
