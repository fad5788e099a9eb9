//! Decides when the calls of one account and model may be sent. Pure: time is passed in, and nothing
//! is waited for.
//!
//! A call asks, waits in the queue until [`Throttle::poll`] admits it, and is in flight until it is
//! done. What the head of its response tells takes effect at once.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use posse_port::model::{CallPriority, CallWait, RateLimits, Standing};
use posse_protocol::Usage;

use super::buckets::{Buckets, Need};
use super::limits::AccountLimits;
use super::queue::{FairQueue, QueuePlace, Ticket};
use super::stop::{Fault, FaultKind, Gate, Stop};
use crate::retry::{RetryPolicy, StopFacts};

/// Requests that may be unanswered at once right after a stop.
const FIRST_WINDOW: usize = 2;
/// Time without an answer after which the window grows all the same: requests may hang.
const WINDOW_WAIT: Duration = Duration::from_secs(45);
/// What a request costs its subtree beside its tokens, in tokens.
const REQUEST_COST: u64 = 8_000;
/// Input that is expected of a request at most, in tokens: bytes say little of images.
const MOST_INPUT: u64 = 200_000;
/// Time for which a provider's cache keeps an entry at least.
const CACHE_KEPT: Duration = Duration::from_secs(300);

/// A call that asks to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// Who asks.
    pub(crate) standing: &'a Standing,
    /// Estimated size of the prompt, in tokens.
    pub(crate) prompt: u64,
    /// Time that the call itself waits first.
    pub(crate) wait: Duration,
    /// Place among its siblings that the call has had before.
    pub(crate) place: Option<u64>,
    /// True if it has failed as a probe: then it goes before nobody.
    pub(crate) demoted: bool,
    /// True if limits count what is read from the cache, too.
    pub(crate) limits_cached: bool,
}

/// What the head of a response tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) status: u16,
    pub(super) limits: &'a RateLimits,
    pub(super) retry_after: Option<Duration>,
}

/// What may be done now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// Calls to be sent.
    pub(super) admitted: Vec<Ticket>,
    /// Calls that should not wait any longer.
    pub(super) refused: Vec<Ticket>,
    /// Time to look again; none if nobody waits, or only for a response.
    pub(super) next: Option<Duration>,
}

/// A call that waits.
#[derive(Debug)]
struct Waiting {
    /// Estimated input that is not cached.
    input: u64,
    /// Estimated input once nothing is cached any more.
    all_input: u64,
    /// When it asked.
    asked: Duration,
    /// Place among its siblings.
    order: u64,
    /// Set until its own wait is over.
    delayed: Option<(Duration, QueuePlace)>,
}

impl Waiting {
    /// Returns what it is expected to need now: while it waits, cache entries expire.
    fn input(&self, now: Duration) -> u64 {
        match now.saturating_sub(self.asked) < CACHE_KEPT {
            true => self.input,
            false => self.all_input,
        }
    }
}

/// A call that was sent.
#[derive(Debug)]
struct Flight {
    admission: u64,
    sent: Duration,
    order: u64,
    need: Need,
    answered: bool,
    /// The stop that it probes.
    probes: Option<u64>,
    /// The stop that it has met.
    met: Option<Met>,
}

/// A stop, as a call has met it: it may have ended since.
#[derive(Clone, Copy, Debug)]
struct Met {
    number: u64,
    too_long: bool,
}

/// How many requests may be unanswered, after a stop.
#[derive(Debug)]
struct Window {
    size: usize,
    /// Time of the last growth.
    grown: Duration,
}

/// The state of an account and model.
#[derive(Debug)]
pub(super) struct Throttle {
    policy: RetryPolicy,
    concurrent: usize,
    buckets: Buckets,
    queue: FairQueue,
    waiting: HashMap<Ticket, Waiting>,
    /// Calls that wait for themselves before they enter the queue.
    delayed: BTreeSet<(Duration, Ticket)>,
    flights: HashMap<Ticket, Flight>,
    unanswered: usize,
    stop: Option<Stop>,
    window: Option<Window>,
    tickets: u64,
    admissions: u64,
    stops: u64,
}

impl Throttle {
    pub(super) fn new(policy: RetryPolicy, limits: &AccountLimits) -> Self {
        Self {
            policy,
            concurrent: limits.concurrent.unwrap_or(usize::MAX).max(1),
            buckets: Buckets::new(limits),
            queue: FairQueue::default(),
            waiting: HashMap::new(),
            delayed: BTreeSet::new(),
            flights: HashMap::new(),
            unanswered: 0,
            stop: None,
            window: None,
            tickets: 0,
            admissions: 0,
            stops: 0,
        }
    }

    /// Enters a call.
    pub(super) fn ask(&mut self, now: Duration, ask: Ask<'_>) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        if self.waiting.is_empty()
            && let Some(stop) = &self.stop
            && stop.is_stale(now, &self.policy)
        {
            self.forget_stop(now);
        }
        let standing = ask.standing;
        let all_input = ask.prompt.clamp(1, MOST_INPUT);
        let free = if ask.limits_cached {
            0
        } else {
            standing.cached
        };
        let uncached = ask.prompt.saturating_sub(free);
        let input = uncached.clamp(1, MOST_INPUT);
        let order = ask.place.unwrap_or(ticket.0);
        let warm = standing.cached > 0 && !ask.demoted;
        let cost = REQUEST_COST + input;
        let priority = match ask.demoted {
            true => CallPriority::Usual,
            false => standing.priority,
        };
        let place = QueuePlace::new(&standing.lineage, priority, warm, order, cost);
        let delayed = if ask.wait.is_zero() {
            self.queue.push(ticket, place);
            None
        } else {
            let at = now + ask.wait;
            self.delayed.insert((at, ticket));
            Some((at, place))
        };
        let waiting = Waiting {
            input,
            all_input,
            asked: now,
            order,
            delayed,
        };
        self.waiting.insert(ticket, waiting);
        ticket
    }

    /// Returns who may be sent now, and when to look again.
    pub(super) fn poll(&mut self, now: Duration) -> Turn {
        let mut turn = Turn::default();
        self.enter_delayed(now);
        if let Some(stop) = &self.stop
            && stop.is_too_long(now, &self.policy)
        {
            let asked = stop.is_asked_too_long(now, &self.policy);
            turn.refused = self.give_up();
            if !asked {
                self.forget_stop(now);
            }
        }
        while let Some(ticket) = self.queue.peek() {
            match self.closed_until(now, ticket) {
                None => self.admit(now, &mut turn),
                Some(at) => {
                    turn.next = at;
                    break;
                }
            }
        }
        if self.queue.is_empty() && self.stop.is_none() {
            self.window = None;
        }
        if let Some(stop) = self.stop.as_ref().filter(|_| !self.queue.is_empty())
            && let Some(at) = stop.too_long_at(&self.policy)
        {
            turn.next = Some(turn.next.map_or(at, |next| next.min(at)));
        }
        if let Some((at, _)) = self.delayed.first() {
            turn.next = Some(turn.next.map_or(*at, |next| next.min(*at)));
        }
        turn
    }

    /// Takes in the head of a response. Returns true if it stops all calls.
    pub(super) fn head(&mut self, now: Duration, ticket: Ticket, head: &Head<'_>) -> bool {
        self.answered(ticket);
        let Some(flight) = self.flights.get(&ticket) else {
            return false;
        };
        let (admission, need) = (flight.admission, flight.need);
        self.buckets.told(now, admission, flight.sent, head.limits);
        let kind = match head.status {
            429 => FaultKind::Limited,
            500.. => FaultKind::Unavailable,
            // Whatever else it says, the provider is there and counts the request.
            _ => {
                self.accepted(now, ticket);
                return false;
            }
        };
        let retry_after = head.retry_after;
        if kind == FaultKind::Limited {
            self.buckets.refused(now, admission, need, retry_after);
        }
        self.fault(now, ticket, Fault { kind, retry_after });
        true
    }

    /// Takes in that the connection of a call failed. Only if it had no response yet, the account is
    /// to blame.
    pub(super) fn unreachable(&mut self, now: Duration, ticket: Ticket, refused_here: bool) {
        let flight = self.flights.get(&ticket);
        if flight.is_some_and(|flight| !flight.answered) {
            self.answered(ticket);
            let kind = match refused_here {
                true => FaultKind::RefusedHere,
                false => FaultKind::Unavailable,
            };
            let retry_after = None;
            self.fault(now, ticket, Fault { kind, retry_after });
        }
    }

    /// Ends a call whose usage is known.
    pub(super) fn done(&mut self, now: Duration, ticket: Ticket, usage: &Usage) {
        if let Some(flight) = self.land(ticket) {
            self.buckets
                .settle(now, flight.admission, flight.need, usage);
        }
    }

    /// Ends a call that has failed. Returns the stop that it has met, if the account is to blame.
    /// An error that no wait mends was the request's own after all.
    pub(super) fn failed(
        &mut self,
        now: Duration,
        ticket: Ticket,
        usage: &Usage,
        retryable: bool,
    ) -> Option<StopFacts> {
        let flight = self.flights.get(&ticket)?;
        let (order, met, probes) = (flight.order, flight.met, flight.probes);
        if met.is_some() || !retryable || *usage != Usage::default() {
            self.done(now, ticket, usage);
        } else {
            // It broke off: what it has used stays as it was estimated.
            self.land(ticket);
        }
        let met = met?;
        let probed = probes == Some(met.number);
        let stop = self.stop.as_mut().filter(|stop| stop.number == met.number);
        if !retryable {
            if stop.is_some_and(Stop::take_back) {
                self.stop = None;
            }
            return None;
        }
        // A stop that has ended meanwhile holds up nothing.
        let wait = stop.as_ref().map(|stop| stop.until.saturating_sub(now));
        Some(StopFacts {
            number: met.number,
            wait: wait.unwrap_or_default(),
            too_long: met.too_long,
            place: stop
                .filter(|stop| stop.is_limit() && !probed)
                .map(|_| order),
            probed,
        })
    }

    /// Removes a call that is not wanted any more, whether it waits or was sent. What it has used
    /// is unknown then, and stays as it was estimated.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.queue.remove(ticket);
        let waited = self.waiting.remove(&ticket);
        if let Some((at, _)) = waited.and_then(|waiting| waiting.delayed) {
            self.delayed.remove(&(at, ticket));
        }
        self.land(ticket);
    }

    /// Returns what calls wait for, and for how long if that is known. `next` is when the account
    /// is looked at again.
    pub(super) fn reason(
        &self,
        now: Duration,
        next: Option<Duration>,
    ) -> (CallWait, Option<Duration>) {
        let (why, at) = match &self.stop {
            Some(stop) => (stop.reason(), Some(stop.until)),
            None => (CallWait::Limit, next),
        };
        (why, at.map(|at| at.saturating_sub(now)))
    }

    /// Moves calls whose own wait is over into the queue.
    fn enter_delayed(&mut self, now: Duration) {
        while let Some(&(at, ticket)) = self.delayed.first()
            && at <= now
        {
            self.delayed.pop_first();
            let waiting = self.waiting.get_mut(&ticket);
            if let Some((_, place)) = waiting.and_then(|waiting| waiting.delayed.take()) {
                self.queue.push(ticket, place);
            }
        }
    }

    /// Takes all calls that wait.
    fn give_up(&mut self) -> Vec<Ticket> {
        self.delayed.clear();
        self.queue.drain();
        let mut all: Vec<Ticket> = self.waiting.drain().map(|(ticket, _)| ticket).collect();
        all.sort_unstable();
        all
    }

    /// Returns until when the call may not be sent; the time is unknown if it waits for a response.
    /// None if it may be sent now.
    fn closed_until(&mut self, now: Duration, ticket: Ticket) -> Option<Option<Duration>> {
        if self.flights.len() >= self.concurrent {
            return Some(None);
        }
        if let Some(stop) = &self.stop {
            return match stop.gate(now) {
                // The provider knows when it can answer again: its word beats the buckets.
                Gate::Probe => None,
                Gate::Until(at) => Some(Some(at)),
            };
        }
        if let Some(window) = &mut self.window {
            if now.saturating_sub(window.grown) >= WINDOW_WAIT {
                (window.size, window.grown) = (window.size.saturating_mul(2), now);
            }
            if self.unanswered >= window.size {
                return Some(Some(window.grown + WINDOW_WAIT));
            }
        }
        let need = self.buckets.need(self.waiting.get(&ticket)?.input(now));
        let short = self.buckets.short_for(now, need);
        (!short.is_zero()).then(|| Some(now + short))
    }

    /// Sends the call that is next.
    fn admit(&mut self, now: Duration, turn: &mut Turn) {
        let Some(ticket) = self.queue.pop() else {
            return;
        };
        let Some(waiting) = self.waiting.remove(&ticket) else {
            return;
        };
        self.admissions += 1;
        let need = self.buckets.need(waiting.input(now));
        self.buckets.admit(now, self.admissions, need);
        let probes = self.stop.as_mut().map(|stop| {
            stop.probe_with(ticket, now);
            stop.number
        });
        self.unanswered += 1;
        let admission = self.admissions;
        let flight = Flight {
            admission,
            sent: now,
            order: waiting.order,
            need,
            answered: false,
            probes,
            met: None,
        };
        self.flights.insert(ticket, flight);
        turn.admitted.push(ticket);
    }

    /// Notes that a call is not unanswered any more.
    fn answered(&mut self, ticket: Ticket) {
        if let Some(flight) = self.flights.get_mut(&ticket)
            && !std::mem::replace(&mut flight.answered, true)
        {
            self.unanswered = self.unanswered.saturating_sub(1);
            self.buckets.counted(flight.admission);
        }
    }

    /// Ends the stop if the call was its probe; otherwise more may follow.
    fn accepted(&mut self, now: Duration, ticket: Ticket) {
        let probes = self.flights.get(&ticket).and_then(|flight| flight.probes);
        match &self.stop {
            Some(stop) if probes == Some(stop.number) => {
                self.stop = None;
                let (size, grown) = (FIRST_WINDOW, now);
                self.window = Some(Window { size, grown });
            }
            Some(_) => {}
            None => {
                if let Some(window) = &mut self.window {
                    (window.size, window.grown) = (window.size.saturating_add(1), now);
                }
            }
        }
    }

    fn fault(&mut self, now: Duration, ticket: Ticket, fault: Fault) {
        if self.stop.is_none() {
            self.forget_stop(now);
        }
        if let (Some(stop), Some(flight)) = (&mut self.stop, self.flights.get_mut(&ticket)) {
            let probed = flight.probes == Some(stop.number);
            stop.fault(now, fault, probed, &self.policy);
            flight.met = Some(Met {
                number: stop.number,
                too_long: stop.is_too_long(now, &self.policy),
            });
        }
        self.window = None;
    }

    /// Begins a stop without a past: its first request is a probe.
    fn forget_stop(&mut self, now: Duration) {
        self.stops += 1;
        self.stop = Some(Stop::untried(self.stops, now));
    }

    /// Removes a call that was sent.
    fn land(&mut self, ticket: Ticket) -> Option<Flight> {
        self.answered(ticket);
        if let Some(stop) = &mut self.stop {
            stop.over(ticket);
        }
        self.flights.remove(&ticket)
    }
}
