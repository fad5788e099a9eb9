//! Whether a failed call is tried again, and how long it waits before for its own sake. What holds
//! up all calls of an account is the governor's.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use posse_port::model::ModelError;

use crate::address::is_local;

/// How often and how patiently a call is retried.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Number of retries for the call's own faults. Probes of an outage that goes on are not
    /// counted.
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
    /// Longest `retry-after` that is waited for; a longer one ends the calls that wait.
    pub longest_retry_after: Duration,
    /// Longest outage that is waited for; a longer one ends the calls that wait.
    pub longest_outage: Duration,
    /// Time without an event after which an attempt has stalled.
    pub stall: Duration,
    /// Returns a number between 0 and 1 that spreads the waits of many processes.
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

/// What a failed call has to know about the stop that it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StopFacts {
    /// Number of the stop.
    pub(crate) number: u64,
    /// Time until the next probe.
    pub(crate) wait: Duration,
    /// True if nobody should wait for it.
    pub(crate) too_long: bool,
    /// The call's place among its siblings, if it keeps it: a request that makes the provider fail
    /// again and again should not always be the probe.
    pub(crate) place: Option<u64>,
    /// True if the call was the stop's probe.
    pub(crate) probed: bool,
}

/// What a call has tried.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    /// Failures that count.
    counted: u32,
    /// Failures that were the call's own.
    own: u32,
    stalls: u32,
    /// The stop that it has met last.
    stop: Option<u64>,
}

impl Tries {
    /// Counts a failure. Returns how long the call waits for its own sake before it asks again;
    /// none if the failure is final. `stop` is set if the account was to blame.
    pub(crate) fn failed(
        &mut self,
        error: &ModelError,
        stop: Option<StopFacts>,
        policy: &RetryPolicy,
    ) -> Option<Duration> {
        if !error.retryable() {
            return None;
        }
        let wait = match stop {
            Some(stop) if stop.too_long => return None,
            Some(stop) => {
                // Probes of one outage count once: an outage is nobody's fault.
                self.counted += u32::from(self.stop.replace(stop.number) != Some(stop.number));
                Duration::ZERO
            }
            None => {
                self.counted += 1;
                self.own += 1;
                self.stalls += u32::from(matches!(error, ModelError::Stalled { .. }));
                // The provider knows best when it can answer again, so its wait is not spread.
                error
                    .retry_after()
                    .unwrap_or_else(|| policy.back_off(self.own))
            }
        };
        let too_often = self.counted > policy.retries || self.stalls > policy.stall_retries;
        (!too_often && wait <= policy.longest_retry_after).then_some(wait)
    }
}

/// Returns true if nothing listens at an address of this machine.
pub(crate) fn is_refused_here(error: &ModelError) -> bool {
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
