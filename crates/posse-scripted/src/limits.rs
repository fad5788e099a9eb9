//! Rate limits: which requests the provider would admit, and which it would refuse.
//!
//! A pure machine: the time goes in with every question, so that a simulated clock can drive it.
//! It shares no code with the clients that keep to the limits.

mod bucket;
mod pair;
pub(crate) mod settings;

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use self::pair::Pair;

pub use self::bucket::TokenBucket;
pub use self::pair::{LimitSummary, PairSummary};
pub use self::settings::{LimitSettings, LimitsProblem};

/// Maximum number of pairs of account and model.
pub const MOST_PAIRS: usize = 4_096;

/// Time after a refusal in which a request that was already on its way can arrive.
pub const GRACE: Duration = Duration::from_millis(20);

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Requests a minute.
    Requests,
    /// Input tokens a minute.
    InputTokens,
    /// Output tokens a minute.
    OutputTokens,
    /// Input and output tokens a minute together.
    Tokens,
    /// Requests in flight.
    Concurrency,
}

impl LimitKind {
    /// Returns its name in scripts and summaries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Tokens => "tokens",
            Self::Concurrency => "concurrency",
        }
    }
}

/// How a request stands to the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was admitted.
    Within,
    /// It exceeded a limit; of several, the one that it must wait for longest.
    Over(LimitKind),
    /// It came inside a `retry-after` that its account and model had been given.
    Held,
    /// It came in an outage.
    Outage,
}

/// What a refused request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// An answer with the status of an error.
    Status {
        /// The status.
        status: u16,
        /// Seconds for the header `retry-after`; without, there is no such header.
        retry_after: Option<u64>,
    },
    /// No answer: its connection ends, and new ones are refused.
    Disconnect,
}

/// When a request over a limit may come again, as the answer says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    /// When the buckets have what it needs, in whole seconds. Nothing, if only a request in
    /// flight can make room.
    Exact,
    /// Nothing is said.
    Omitted,
    /// Always the same number of seconds.
    Seconds(u64),
}

/// A request as the limits see it.
#[derive(Clone, Copy, Debug)]
pub struct LimitedRequest<'a> {
    /// The credential.
    pub account: &'a str,
    /// The model.
    pub model: &'a str,
    /// Input tokens that count: cache writes do, cache reads only where the provider counts them.
    pub input_tokens: u64,
    /// When it arrived. It is judged then or later.
    pub arrived: Duration,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Decision {
    /// It is admitted.
    Admitted(Admission),
    /// It is refused.
    Refused(Refusal),
}

/// A refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub verdict: Verdict,
    /// What it gets.
    pub reaction: Reaction,
}

/// A request in flight. It must be settled: until then it counts to the concurrency.
#[derive(Debug)]
#[must_use = "a request that is not settled is in flight for ever"]
pub struct Admission {
    pair: usize,
}

/// Returned if there are more pairs of account and model than [`MOST_PAIRS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {MOST_PAIRS} pairs of account and model")]
pub struct TooManyPairs;

/// One limit, as headers tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The limit a minute.
    pub limit: u64,
    /// What is left of it now.
    pub remaining: u64,
    /// Time until all of it is left.
    pub full_in: Duration,
}

/// The limits of an account and model, as headers tell them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Requests.
    pub requests: Option<Level>,
    /// Input tokens.
    pub input_tokens: Option<Level>,
    /// Output tokens.
    pub output_tokens: Option<Level>,
    /// All tokens: their own limit, or else the sum of the limits of input and output.
    pub tokens: Option<Level>,
}

/// The state of all limits.
#[derive(Debug, Default)]
pub struct RateLimiter {
    settings: LimitSettings,
    accounts: HashMap<String, Account>,
    pairs: Vec<Pair>,
}

/// An account that has asked.
#[derive(Debug)]
struct Account {
    /// Its name in records. Credentials that the script does not name are not shown.
    name: String,
    /// Places of its models in the list of pairs.
    models: HashMap<String, usize>,
}

impl RateLimiter {
    /// Returns limits of which nothing is used.
    pub fn new(settings: LimitSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Decides about a request, and takes what it needs if it is admitted.
    pub fn ask(
        &mut self,
        now: Duration,
        request: &LimitedRequest<'_>,
    ) -> Result<Decision, TooManyPairs> {
        let outage = self.settings.outage(now);
        let place = self.place(now, request.account, request.model)?;
        let pair = &mut self.pairs[place];
        let refused = pair.refusal(now, request, outage.map(|(reaction, _)| reaction));
        Ok(match refused {
            Some(refusal) => {
                pair.refuse(now, &refusal);
                Decision::Refused(refusal)
            }
            None => {
                pair.admit(now, request.input_tokens);
                Decision::Admitted(Admission { pair: place })
            }
        })
    }

    /// Ends a request in flight, whose answer had `output_tokens`.
    pub fn settle(&mut self, now: Duration, admission: Admission, output_tokens: u64) {
        self.pairs[admission.pair].settle(now, output_tokens);
    }

    /// Returns what happens to every request at `now`, and for how long from then on.
    pub fn outage(&self, now: Duration) -> Option<(Reaction, Duration)> {
        self.settings.outage(now)
    }

    /// Returns the levels of an account and model; none of a pair that has not asked.
    pub fn levels(&self, now: Duration, account: &str, model: &str) -> Levels {
        let account = self.accounts.get(account);
        let place = account.and_then(|account| account.models.get(model));
        place.map_or_else(Levels::default, |place| self.pairs[*place].levels(now))
    }

    /// Returns the name of an account in summaries: its credential if the script names that, or
    /// else a number. None if it has not asked.
    pub fn name_of(&self, account: &str) -> Option<&str> {
        self.accounts.get(account).map(|known| known.name.as_str())
    }

    /// Returns what each account and model did, in the order of their first requests.
    pub fn summary(&self, now: Duration) -> Vec<PairSummary> {
        self.pairs.iter().map(|pair| pair.summary(now)).collect()
    }

    /// Returns the place of a pair, which is made if it is new.
    fn place(&mut self, now: Duration, account: &str, model: &str) -> Result<usize, TooManyPairs> {
        let known = self.accounts.get(account);
        if let Some(place) = known.and_then(|known| known.models.get(model)) {
            return Ok(*place);
        }
        let place = self.pairs.len();
        if place == MOST_PAIRS {
            return Err(TooManyPairs);
        }
        let number = self.accounts.len() + 1;
        let is_named = self.settings.names(account);
        let entry = self.accounts.entry(account.to_owned());
        let entry = entry.or_insert_with(|| Account {
            name: if is_named {
                account.to_owned()
            } else {
                format!("account-{number}")
            },
            models: HashMap::new(),
        });
        entry.models.insert(model.to_owned(), place);
        let table = self.settings.table(account, model);
        self.pairs.push(Pair::new(now, &entry.name, model, table));
        Ok(place)
    }
}

#[cfg(test)]
mod tests;
