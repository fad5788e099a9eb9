//! A provider with limits per minute, written from the other side: it keeps the time at which it
//! would be idle again (the generic cell rate algorithm), in whole microseconds.

use std::time::Duration;

use posse_port::model::{Allowance, RateLimits};

const MINUTE_US: u64 = 60_000_000;

/// How it answers during a disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// 429 with a `retry-after` of this many seconds.
    Asks(u64),
    /// 429 without.
    Busy,
    /// 529.
    Overloaded,
}

/// A disturbance, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disturbance {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) trouble: Trouble,
}

pub(super) struct Provider {
    /// Microseconds per request and picoseconds per token.
    request_us: u64,
    token_ps: u64,
    requests_idle_at: u64,
    tokens_idle_at: u64,
    rpm: u64,
    tpm: u64,
    pub(super) tells: bool,
    pub(super) disturbances: Vec<Disturbance>,
    pub(super) accepted: u64,
    pub(super) accepted_tokens: u64,
    /// Requests that it refused for being too many.
    pub(super) over: u64,
}

/// The head of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) limits: RateLimits,
    pub(super) retry_after: Option<Duration>,
}

impl Provider {
    pub(super) fn new(rpm: u64, tpm: u64) -> Self {
        Self {
            request_us: MINUTE_US / rpm,
            token_ps: MINUTE_US * 1_000_000 / tpm,
            requests_idle_at: 0,
            tokens_idle_at: 0,
            rpm,
            tpm,
            tells: true,
            disturbances: Vec::new(),
            accepted: 0,
            accepted_tokens: 0,
            over: 0,
        }
    }

    pub(super) fn receive(&mut self, now: u64, tokens: u64) -> Answer {
        let inside = |it: &&Disturbance| (it.from..it.to).contains(&now);
        if let Some(disturbance) = self.disturbances.iter().find(inside) {
            let (status, retry_after) = match disturbance.trouble {
                Trouble::Asks(seconds) => (429, Some(Duration::from_secs(seconds))),
                Trouble::Busy => (429, None),
                Trouble::Overloaded => (529, None),
            };
            return Answer {
                status,
                limits: RateLimits::default(),
                retry_after,
            };
        }
        let requests = self.requests_idle_at.max(now) + self.request_us;
        let used = tokens * self.token_ps / 1_000_000;
        let all = self.tokens_idle_at.max(now) + used;
        let excess = (requests.max(all) - now).saturating_sub(MINUTE_US);
        if excess > 0 {
            self.over += 1;
            return Answer {
                status: 429,
                limits: self.limits(now),
                retry_after: Some(Duration::from_micros(excess)),
            };
        }
        (self.requests_idle_at, self.tokens_idle_at) = (requests, all);
        self.accepted += 1;
        self.accepted_tokens += tokens;
        Answer {
            status: 200,
            limits: self.limits(now),
            retry_after: None,
        }
    }

    fn limits(&self, now: u64) -> RateLimits {
        if !self.tells {
            return RateLimits::default();
        }
        let left = |idle_at: u64| MINUTE_US - (idle_at.max(now) - now).min(MINUTE_US);
        let allowance = |limit, remaining| Allowance {
            limit,
            remaining,
            reset_at_ms: None,
        };
        let requests = left(self.requests_idle_at) / self.request_us;
        let tokens = left(self.tokens_idle_at) * 1_000_000 / self.token_ps;
        RateLimits {
            requests: Some(allowance(self.rpm, requests)),
            input_tokens: Some(allowance(self.tpm, tokens)),
            ..RateLimits::default()
        }
    }

    /// Returns how many requests of this size its limits allow in a time that has `lost` in it.
    pub(super) fn allows(&self, microseconds: u64, lost: u64, tokens: f64) -> f64 {
        // What refills while nothing can be sent is a minute's worth at most.
        let minutes = (microseconds - lost) as f64 / MINUTE_US as f64 + 1.0;
        let by_tokens = self.tpm as f64 / tokens;
        minutes * by_tokens.min(self.rpm as f64)
    }
}
