//! What a script says about limits and outages, checked.

use std::time::Duration;

use serde::Deserialize;

use super::{LimitKind, Reaction, RetryAfter, TokenBucket};

/// The largest limit, burst and concurrency.
const MOST: u64 = 1_000_000_000_000;
/// The longest `retry_after`: a day.
const LONGEST_RETRY_AFTER: u64 = 86_400;

/// What is wrong with a table about limits or an outage.
#[derive(Debug, thiserror::Error)]
pub enum LimitsProblem {
    /// A table of limits has none.
    #[error(
        "it limits nothing; add `requests_per_minute`, `input_tokens_per_minute`, \
         `output_tokens_per_minute`, `tokens_per_minute` or `concurrency`"
    )]
    Nothing,
    /// A number makes no sense.
    #[error("`{field}` must be from 1 to 1,000,000,000,000")]
    Range {
        /// The number's name.
        field: String,
    },
    /// A burst has no limit.
    #[error("`{limit}_burst` belongs to `{limit}_per_minute`, which is missing")]
    BurstWithoutLimit {
        /// What is to be limited.
        limit: &'static str,
    },
    /// `retry_after` is something else.
    #[error("`retry_after` must be true, false or a number of seconds up to 86,400")]
    RetryAfter,
    /// An earlier table matches the same requests.
    #[error("limits {earlier} has the same `account` and `model`")]
    Repeated {
        /// The number of the earlier table.
        earlier: usize,
    },
    /// An outage has no duration.
    #[error("`for_ms` must be at least 1")]
    NoTime,
    /// An outage has no form, or two.
    #[error("an outage has either `status` or `refuse = true`")]
    OutageForm,
    /// An outage answers with a status that is not one of overload or failure.
    #[error("{status} is not the status of an outage; use 429, or 500 to 599")]
    OutageStatus {
        /// The status.
        status: u16,
    },
    /// A refused connection is to carry a header.
    #[error("`retry_after` belongs to `status`")]
    RetryAfterRefused,
}

/// Limits and outages of a server.
#[derive(Clone, Debug, Default)]
pub struct LimitSettings {
    tables: Vec<LimitTable>,
    outages: Vec<Outage>,
}

impl LimitSettings {
    pub(crate) fn new(tables: Vec<LimitTable>, outages: Vec<Outage>) -> Self {
        Self { tables, outages }
    }

    /// Returns the first table about `account` and `model`.
    pub(super) fn table(&self, account: &str, model: &str) -> Option<&LimitTable> {
        self.tables
            .iter()
            .find(|table| matches(&table.account, account) && matches(&table.model, model))
    }

    /// Returns true if a table names the account, by itself or by a pattern.
    pub(super) fn names(&self, account: &str) -> bool {
        self.tables
            .iter()
            .any(|table| table.account != ANY && matches(&table.account, account))
    }

    /// Returns what happens to every request at `now`, and for how long.
    pub(super) fn outage(&self, now: Duration) -> Option<(Reaction, Duration)> {
        let outage = self
            .outages
            .iter()
            .find(|outage| outage.from <= now && now < outage.end)?;
        Some((outage.reaction, outage.end - now))
    }
}

/// The pattern that matches every text.
const ANY: &str = "*";

/// Returns true if `text` is `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut left) = text.strip_prefix(first) else {
        return false;
    };
    for part in middle.split('*') {
        let Some((_, after)) = left.split_once(part) else {
            return false;
        };
        left = after;
    }
    left.ends_with(last)
}

/// Limits of each account and model that match.
#[derive(Clone, Debug)]
pub(crate) struct LimitTable {
    account: String,
    model: String,
    /// Tokens a minute, and the bucket's capacity.
    buckets: Vec<(LimitKind, u64, u64)>,
    pub(super) concurrency: Option<u64>,
    pub(super) retry_after: RetryAfter,
}

impl LimitTable {
    /// Returns its buckets, full.
    pub(super) fn buckets(&self, now: Duration) -> Vec<(LimitKind, TokenBucket)> {
        let buckets = self.buckets.iter();
        buckets
            .map(|(kind, limit, burst)| (*kind, TokenBucket::new(now, *limit, *burst)))
            .collect()
    }
}

/// A period in which nothing is answered.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    from: Duration,
    end: Duration,
    reaction: Reaction,
}

/// `[[limits]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    account: Option<String>,
    model: Option<String>,
    requests_per_minute: Option<u64>,
    requests_burst: Option<u64>,
    input_tokens_per_minute: Option<u64>,
    input_tokens_burst: Option<u64>,
    output_tokens_per_minute: Option<u64>,
    output_tokens_burst: Option<u64>,
    tokens_per_minute: Option<u64>,
    tokens_burst: Option<u64>,
    concurrency: Option<u64>,
    retry_after: Option<toml::Value>,
}

impl RawLimits {
    /// Checks a table that comes after `earlier` ones.
    pub(crate) fn check(self, earlier: &[LimitTable]) -> Result<LimitTable, LimitsProblem> {
        let pairs = [
            (
                LimitKind::Requests,
                self.requests_per_minute,
                self.requests_burst,
            ),
            (
                LimitKind::InputTokens,
                self.input_tokens_per_minute,
                self.input_tokens_burst,
            ),
            (
                LimitKind::OutputTokens,
                self.output_tokens_per_minute,
                self.output_tokens_burst,
            ),
            (LimitKind::Tokens, self.tokens_per_minute, self.tokens_burst),
        ];
        let mut buckets = Vec::new();
        for (kind, limit, burst) in pairs {
            let name = kind.name();
            let Some(limit) = limit else {
                if burst.is_some() {
                    return Err(LimitsProblem::BurstWithoutLimit { limit: name });
                }
                continue;
            };
            let limit = sane(limit, || format!("{name}_per_minute"))?;
            let burst = sane(burst.unwrap_or(limit), || format!("{name}_burst"))?;
            buckets.push((kind, limit, burst));
        }
        let concurrency = self
            .concurrency
            .map(|most| sane(most, || "concurrency".to_owned()))
            .transpose()?;
        if buckets.is_empty() && concurrency.is_none() {
            return Err(LimitsProblem::Nothing);
        }
        let table = LimitTable {
            account: self.account.unwrap_or_else(|| ANY.to_owned()),
            model: self.model.unwrap_or_else(|| ANY.to_owned()),
            buckets,
            concurrency,
            retry_after: retry_after(self.retry_after)?,
        };
        let same =
            |other: &LimitTable| (&other.account, &other.model) == (&table.account, &table.model);
        match earlier.iter().position(same) {
            Some(at) => Err(LimitsProblem::Repeated { earlier: at + 1 }),
            None => Ok(table),
        }
    }
}

fn sane(number: u64, field: impl FnOnce() -> String) -> Result<u64, LimitsProblem> {
    if (1..=MOST).contains(&number) {
        Ok(number)
    } else {
        Err(LimitsProblem::Range { field: field() })
    }
}

fn retry_after(value: Option<toml::Value>) -> Result<RetryAfter, LimitsProblem> {
    match value {
        None | Some(toml::Value::Boolean(true)) => Ok(RetryAfter::Exact),
        Some(toml::Value::Boolean(false)) => Ok(RetryAfter::Omitted),
        Some(toml::Value::Integer(seconds)) => u64::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds <= LONGEST_RETRY_AFTER)
            .map(RetryAfter::Seconds)
            .ok_or(LimitsProblem::RetryAfter),
        Some(_) => Err(LimitsProblem::RetryAfter),
    }
}

/// `[[outage]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOutage {
    from_ms: u64,
    for_ms: u64,
    status: Option<u16>,
    refuse: Option<bool>,
    retry_after: Option<u64>,
}

impl RawOutage {
    pub(crate) fn check(self) -> Result<Outage, LimitsProblem> {
        if self.for_ms == 0 {
            return Err(LimitsProblem::NoTime);
        }
        if self
            .retry_after
            .is_some_and(|seconds| seconds > LONGEST_RETRY_AFTER)
        {
            return Err(LimitsProblem::RetryAfter);
        }
        let reaction = match (self.status, self.refuse, self.retry_after) {
            (Some(status @ (429 | 500..=599)), None, retry_after) => Reaction::Status {
                status,
                retry_after,
            },
            (Some(status), None, _) => return Err(LimitsProblem::OutageStatus { status }),
            (None, Some(true), None) => Reaction::Disconnect,
            (None, Some(true), Some(_)) => return Err(LimitsProblem::RetryAfterRefused),
            _ => return Err(LimitsProblem::OutageForm),
        };
        let from = Duration::from_millis(self.from_ms);
        let end = from + Duration::from_millis(self.for_ms);
        Ok(Outage {
            from,
            end,
            reaction,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let fits = [
            "*",
            "claude-*",
            "*-5",
            "claude-*-5",
            "c*-opus*5",
            "claude-opus-5",
            "**",
        ];
        for pattern in fits {
            assert!(matches(pattern, "claude-opus-5"), "{pattern}");
        }
        for pattern in ["", "claude", "opus*", "*opus", "claude-opus-5*5", "*x*"] {
            assert!(!matches(pattern, "claude-opus-5"), "{pattern}");
        }
        assert!(matches("", ""));
    }
}
