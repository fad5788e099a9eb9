//! A stop: nothing is sent until it ends, then one probe, whose success ends it.

use std::time::Duration;

use posse_port::model::CallWait;

use super::queue::Ticket;
use crate::retry::RetryPolicy;

/// Time that a probe may take to be answered before another one is sent.
const PROBE_WAIT: Duration = Duration::from_secs(45);

/// A sign that the account, not one request, is in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    /// The wait that the provider asks for.
    pub(super) retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Too many requests or tokens.
    Limited,
    /// The provider fails, or cannot be reached.
    Unavailable,
    /// Nothing listens at an address of this machine.
    RefusedHere,
}

/// A stop of all requests.
#[derive(Debug)]
pub(super) struct Stop {
    /// Distinguishes it from earlier stops.
    pub(super) number: u64,
    /// Time from which its length counts.
    since: Duration,
    /// Nothing is sent before.
    pub(super) until: Duration,
    kind: FaultKind,
    /// True if `until` is the provider's own word.
    asked: bool,
    /// Number of failures in a row: that which began it, and of each probe.
    failures: u32,
    /// Faults of this stop that were not taken back.
    faults: u32,
    /// The probe in progress, and when it was sent.
    probe: Option<(Ticket, Duration)>,
}

/// Whether a request may be sent during a stop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// It may, as the probe.
    Probe,
    /// Nothing may be sent before.
    Until(Duration),
}

impl Stop {
    /// Returns a stop that only waits for a probe: nothing has failed yet.
    pub(super) fn untried(number: u64, now: Duration) -> Self {
        Self {
            number,
            since: now,
            until: now,
            kind: FaultKind::Unavailable,
            asked: false,
            failures: 0,
            faults: 0,
            probe: None,
        }
    }

    /// Takes in a fault. `probed` says that a probe of this stop has met it.
    pub(super) fn fault(
        &mut self,
        now: Duration,
        fault: Fault,
        probed: bool,
        policy: &RetryPolicy,
    ) {
        self.faults += 1;
        if self.failures == 0 {
            // A wait that the provider asks for is no part of an outage.
            self.since = now + fault.retry_after.unwrap_or_default();
        }
        // Requests that were sent before the stop say nothing new, unless the provider asks for a
        // longer wait.
        if self.failures == 0 || probed {
            self.probe = None;
            self.failures += 1;
            self.kind = fault.kind;
            self.asked = fault.retry_after.is_some();
            let wait = match fault.retry_after {
                Some(asked) if self.failures <= policy.retries => asked,
                // A provider that asks for short waits again and again does not know, either.
                asked => asked
                    .unwrap_or_default()
                    .max(policy.back_off(self.failures)),
            };
            self.until = now + wait;
        } else if let Some(asked) = fault.retry_after
            && now + asked > self.until
        {
            (self.until, self.asked) = (now + asked, true);
        }
    }

    /// Takes a fault back that was none of the account's. Returns true if the stop has no other.
    pub(super) fn take_back(&mut self) -> bool {
        self.faults = self.faults.saturating_sub(1);
        self.faults == 0
    }

    /// Returns true if nobody should wait for its end.
    pub(super) fn is_too_long(&self, now: Duration, policy: &RetryPolicy) -> bool {
        if self.failures == 0 {
            return false;
        }
        if self.is_asked_too_long(now, policy) {
            return true;
        }
        let refused = self.kind == FaultKind::RefusedHere && self.failures > policy.refused_retries;
        // Also while a probe gets no answer.
        let latest = self.until.max(now);
        refused || latest.saturating_sub(self.since) > policy.longest_outage
    }

    /// Returns when its length is too long, if nothing ends it before.
    pub(super) fn too_long_at(&self, policy: &RetryPolicy) -> Option<Duration> {
        let at = self.since + policy.longest_outage + Duration::from_millis(1);
        (self.failures > 0).then_some(at)
    }

    /// Returns true if the provider asks for a wait that is too long.
    pub(super) fn is_asked_too_long(&self, now: Duration, policy: &RetryPolicy) -> bool {
        self.asked && self.until.saturating_sub(now) > policy.longest_retry_after
    }

    /// Returns true if the stop could have ended long ago, but nobody came to probe.
    pub(super) fn is_stale(&self, now: Duration, policy: &RetryPolicy) -> bool {
        self.probe.is_none() && now > self.until + policy.longest_wait
    }

    /// Returns whether a request may be sent.
    pub(super) fn gate(&self, now: Duration) -> Gate {
        match self.probe {
            _ if now < self.until => Gate::Until(self.until),
            Some((_, sent)) if now < sent + PROBE_WAIT => Gate::Until(sent + PROBE_WAIT),
            _ => Gate::Probe,
        }
    }

    pub(super) fn probe_with(&mut self, ticket: Ticket, now: Duration) {
        self.probe = Some((ticket, now));
    }

    /// Notes that a request is over: if it was the probe, another one may be sent.
    pub(super) fn over(&mut self, ticket: Ticket) {
        if self.probe.is_some_and(|(probe, _)| probe == ticket) {
            self.probe = None;
        }
    }

    pub(super) fn is_limit(&self) -> bool {
        self.kind == FaultKind::Limited
    }

    /// Returns what those wait for that are held up by it.
    pub(super) fn reason(&self) -> CallWait {
        match self.kind {
            _ if self.asked => CallWait::RetryAfter,
            FaultKind::Limited => CallWait::Limit,
            FaultKind::Unavailable | FaultKind::RefusedHere => CallWait::Outage,
        }
    }
}
