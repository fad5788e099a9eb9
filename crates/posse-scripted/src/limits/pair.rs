//! One account's use of one model: its buckets, what is in flight, and what was said to it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::settings::LimitTable;
use super::{
    GRACE, Level, Levels, LimitKind, LimitedRequest, Reaction, Refusal, RetryAfter, TokenBucket,
    Verdict,
};

/// The state of an account and model.
#[derive(Debug)]
pub(super) struct Pair {
    account: String,
    model: String,
    first: Duration,
    buckets: Vec<(LimitKind, TokenBucket)>,
    concurrency: Option<u64>,
    retry_after: RetryAfter,
    in_flight: u64,
    hold: Option<Hold>,
    within: u64,
    over: BTreeMap<LimitKind, u64>,
    held: u64,
    outage: u64,
}

/// A time in which it was told not to come.
#[derive(Clone, Copy, Debug)]
struct Hold {
    since: Duration,
    until: Duration,
}

/// What an account did with a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairSummary {
    /// The account's name: its credential if the script names that, or else a number.
    pub account: String,
    /// The model.
    pub model: String,
    /// Time since its first request, in microseconds.
    pub elapsed_us: u64,
    /// Number of requests that were admitted.
    pub within: u64,
    /// Number of requests over a limit, by limit.
    pub over: BTreeMap<LimitKind, u64>,
    /// Number of requests inside a `retry-after`.
    pub held: u64,
    /// Number of requests in an outage.
    pub outage: u64,
    /// Number of requests that have not ended.
    pub in_flight: u64,
    /// Maximum number of requests in flight.
    pub concurrency: Option<u64>,
    /// Its limits a minute.
    pub limits: BTreeMap<LimitKind, LimitSummary>,
}

/// How a limit was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LimitSummary {
    /// The limit a minute.
    pub per_minute: u64,
    /// What can be used at once.
    pub burst: u64,
    /// What is left now; below zero, what is owed.
    pub level: i64,
    /// What was used since the first request.
    pub used: u64,
    /// What could have been used since the first request.
    pub allowed: u64,
}

impl Pair {
    pub(super) fn new(
        now: Duration,
        account: &str,
        model: &str,
        table: Option<&LimitTable>,
    ) -> Self {
        Self {
            account: account.to_owned(),
            model: model.to_owned(),
            first: now,
            buckets: table.map_or_else(Vec::new, |table| table.buckets(now)),
            concurrency: table.and_then(|table| table.concurrency),
            retry_after: table.map_or(RetryAfter::Exact, |table| table.retry_after),
            in_flight: 0,
            hold: None,
            within: 0,
            over: BTreeMap::new(),
            held: 0,
            outage: 0,
        }
    }

    /// Returns why and how a request is refused; none if it is within all limits.
    pub(super) fn refusal(
        &self,
        now: Duration,
        request: &LimitedRequest<'_>,
        outage: Option<Reaction>,
    ) -> Option<Refusal> {
        let hold = self.hold.filter(|hold| now < hold.until);
        let held = hold.filter(|hold| request.arrived > hold.since + GRACE);
        let too_many = |retry_after| Reaction::Status {
            status: 429,
            retry_after,
        };
        match (outage, held) {
            (Some(reaction), None) => Some(Refusal {
                verdict: Verdict::Outage,
                reaction,
            }),
            // In an outage nobody looks at what was said before it; the verdict does.
            (Some(reaction), Some(_)) => Some(Refusal {
                verdict: Verdict::Held,
                reaction,
            }),
            (None, Some(hold)) => Some(Refusal {
                verdict: Verdict::Held,
                reaction: too_many(Some(whole_seconds(hold.until - now))),
            }),
            (None, None) => {
                let (kind, wait) = self.shortage(now, request.input_tokens)?;
                let retry_after = match self.retry_after {
                    RetryAfter::Exact => wait.map(whole_seconds),
                    RetryAfter::Omitted => None,
                    RetryAfter::Seconds(seconds) => Some(seconds),
                };
                Some(Refusal {
                    verdict: Verdict::Over(kind),
                    reaction: too_many(retry_after),
                })
            }
        }
    }

    /// Returns the limit that lacks something for longest, and how long that is, if time helps.
    fn shortage(&self, now: Duration, input: u64) -> Option<(LimitKind, Option<Duration>)> {
        let waits = self.buckets.iter().filter_map(|(kind, bucket)| {
            let wait = bucket.wait_for(now, needed(*kind, input))?;
            Some((*kind, wait))
        });
        let full = self.concurrency.is_some_and(|most| self.in_flight >= most);
        match waits.max_by_key(|(_, wait)| *wait) {
            Some((kind, wait)) => Some((kind, Some(wait))),
            None => full.then_some((LimitKind::Concurrency, None)),
        }
    }

    /// Counts a refusal, and remembers what it says about coming again.
    pub(super) fn refuse(&mut self, now: Duration, refusal: &Refusal) {
        match refusal.verdict {
            Verdict::Within => {}
            Verdict::Over(kind) => *self.over.entry(kind).or_default() += 1,
            Verdict::Held => {
                self.held += 1;
                // The time to come again stays as it was: who asks too often is not shut out.
                return;
            }
            Verdict::Outage => self.outage += 1,
        }
        let Reaction::Status {
            retry_after: Some(seconds),
            ..
        } = refusal.reaction
        else {
            return;
        };
        let until = now + Duration::from_secs(seconds);
        self.hold = Some(match self.hold.filter(|hold| now < hold.until) {
            Some(hold) => Hold {
                until: hold.until.max(until),
                ..hold
            },
            None => Hold { since: now, until },
        });
    }

    /// Takes what is known to be needed, and counts the request in flight.
    pub(super) fn admit(&mut self, now: Duration, input: u64) {
        for (kind, bucket) in &mut self.buckets {
            match kind {
                LimitKind::Requests => bucket.take(now, 1),
                LimitKind::InputTokens | LimitKind::Tokens => bucket.take(now, input),
                LimitKind::OutputTokens | LimitKind::Concurrency => {}
            }
        }
        self.within += 1;
        self.in_flight += 1;
    }

    /// Takes what was said, which may be more than there is.
    pub(super) fn settle(&mut self, now: Duration, output: u64) {
        for (kind, bucket) in &mut self.buckets {
            if matches!(kind, LimitKind::OutputTokens | LimitKind::Tokens) {
                bucket.take(now, output);
            }
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn levels(&self, now: Duration) -> Levels {
        let level = |wanted| {
            let found = self.buckets.iter().find(|(kind, _)| *kind == wanted);
            found.map(|(_, bucket)| Level {
                limit: bucket.per_minute(),
                remaining: u64::try_from(bucket.level(now)).unwrap_or(0),
                full_in: bucket.full_in(now),
            })
        };
        let input_tokens = level(LimitKind::InputTokens);
        let output_tokens = level(LimitKind::OutputTokens);
        Levels {
            requests: level(LimitKind::Requests),
            input_tokens,
            output_tokens,
            tokens: level(LimitKind::Tokens).or_else(|| sum(input_tokens, output_tokens)),
        }
    }

    pub(super) fn summary(&self, now: Duration) -> PairSummary {
        let limits = self.buckets.iter().map(|(kind, bucket)| {
            let summary = LimitSummary {
                per_minute: bucket.per_minute(),
                burst: bucket.capacity(),
                level: bucket.level(now),
                used: bucket.taken(),
                allowed: bucket.allowed(now),
            };
            (*kind, summary)
        });
        PairSummary {
            account: self.account.clone(),
            model: self.model.clone(),
            elapsed_us: now.saturating_sub(self.first).as_micros() as u64,
            within: self.within,
            over: self.over.clone(),
            held: self.held,
            outage: self.outage,
            in_flight: self.in_flight,
            concurrency: self.concurrency,
            limits: limits.collect(),
        }
    }
}

/// Returns what a bucket must hold for a request. How much output comes is not known yet, so that
/// one token suffices; what is too much is owed.
fn needed(kind: LimitKind, input: u64) -> u64 {
    match kind {
        LimitKind::InputTokens => input,
        LimitKind::Tokens => input.max(1),
        LimitKind::Requests | LimitKind::OutputTokens | LimitKind::Concurrency => 1,
    }
}

/// Returns the limit that two limits amount to.
fn sum(one: Option<Level>, other: Option<Level>) -> Option<Level> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Level {
            limit: one.limit + other.limit,
            remaining: one.remaining + other.remaining,
            full_in: one.full_in.max(other.full_in),
        }),
        (one, other) => one.or(other),
    }
}

/// Returns a duration in seconds, rounded up.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
