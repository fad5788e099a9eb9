//! When to retry, and how long to wait before.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use posse_port::model::ModelError;

use crate::address::is_local;

/// How often and how patiently a call is retried.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Number of retries.
    pub retries: u32,
    /// Number of retries if nothing listens at an address of this machine: no network can be to
    /// blame.
    pub refused_retries: u32,
    /// Number of retries after stalls: a stall has already cost its whole timeout.
    pub stall_retries: u32,
    /// Wait before the first retry, doubled for each one after it.
    pub first_wait: Duration,
    /// Limit of doubling.
    pub longest_wait: Duration,
    /// Longest `retry-after` that is waited for; a longer one ends the call.
    pub longest_retry_after: Duration,
    /// Longest outage that is waited for; a longer one ends the calls that wait.
    pub longest_outage: Duration,
    /// Time without an event after which an attempt has stalled.
    pub stall: Duration,
    /// Returns a number between 0 and 1 that spreads the waits of many agents.
    pub random: fn() -> f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 8,
            refused_retries: 2,
            stall_retries: 1,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            longest_retry_after: Duration::from_secs(300),
            longest_outage: Duration::from_secs(900),
            stall: Duration::from_secs(600),
            random,
        }
    }
}

impl RetryPolicy {
    /// Returns the wait before the next attempt, if there is one. `attempt` counts from 1.
    pub(crate) fn wait(&self, error: &ModelError, attempt: u32, stalls: u32) -> Option<Duration> {
        let stalled_too_often =
            matches!(error, ModelError::Stalled { .. }) && stalls > self.stall_retries;
        let refused_too_often = is_refused_here(error) && attempt > self.refused_retries;
        let is_too_often = stalled_too_often || refused_too_often;
        if !error.retryable() || attempt > self.retries || is_too_often {
            return None;
        }
        // The provider knows best when it can answer again, so its wait is not spread.
        if let Some(asked) = error.retry_after() {
            return (asked <= self.longest_retry_after).then_some(asked);
        }
        Some(self.back_off(attempt))
    }

    /// Returns the wait after a number of failures in a row.
    pub(crate) fn back_off(&self, failures: u32) -> Duration {
        // A shift by 32 would overflow; `longest_wait` applies much earlier.
        let doubled = 1 << failures.saturating_sub(1).min(16);
        self.first_wait
            .saturating_mul(doubled)
            .min(self.longest_wait)
            // Never longer than the limit: only up to a quarter is taken off.
            .mul_f64(0.75 + 0.25 * (self.random)())
    }
}

/// Returns true if nothing listens at an address of this machine.
fn is_refused_here(error: &ModelError) -> bool {
    let ModelError::Connect { endpoint, source } = error else {
        return false;
    };
    let mut cause: Option<&(dyn Error + 'static)> = Some(source.as_ref());
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::ConnectionRefused) {
            return is_local(endpoint);
        }
        cause = error.source();
    }
    false
}

/// Spreading waits needs no better randomness than the standard library's hash seeds.
fn random() -> f64 {
    // 53 bits, which is the precision of an `f64`.
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_spread() {
        let policy = RetryPolicy {
            random: || 1.0,
            ..RetryPolicy::default()
        };
        let cut = ModelError::Cut {
            received: 0,
            source: None,
        };
        let waits: Vec<f64> = (1..=9)
            .map_while(|n| policy.wait(&cut, n, 0))
            .map(|wait| wait.as_secs_f64())
            .collect();
        assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        let refused = |endpoint: &str| ModelError::Connect {
            endpoint: endpoint.into(),
            source: Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)),
        };
        let tries = |endpoint| {
            (1..=9)
                .map_while(|n| policy.wait(&refused(endpoint), n, 0))
                .count()
        };
        assert_eq!((tries("http://127.0.0.1:1"), tries("https://host")), (2, 8));
        let least = RetryPolicy {
            random: || 0.0,
            ..policy
        };
        assert_eq!(least.wait(&cut, 1, 0), Some(Duration::from_millis(375)));
        assert!(
            (0..1000)
                .map(|_| random())
                .all(|number| (0.0..1.0).contains(&number))
        );
    }
}
