//! Cache lifetime: what an agent's calls leave in the provider's cache, how long it pays to keep it
//! there, and what was not found again. Pure.

#[cfg(test)]
mod tests;

use posse_protocol::{EntryKind, Missed, Usage};

use posse_port::model::{CacheMiss, Ttl};
use posse_port::store::Transcript;

/// Cost of a token that is read from the cache, written to it for five minutes, and for an hour, in
/// percent of an uncached one. Models differ a little in the first, hardly in the others.
const READ: u64 = 10;
const FIVE_MINUTES: u64 = 125;
const ONE_HOUR: u64 = 200;

/// Fewer tokens are not a miss: providers round the end of a prompt.
const FEW: u64 = 64;
/// The same as a fraction of a large prompt.
const SMALL_PART: u64 = 100;

/// What is known of an agent's calls. A fork starts with its parent's: that is what it can read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheTtl {
    left: Option<TimeLeft>,
    /// Cost of all prompts so far, had every one been written for five minutes, or for an hour.
    five_minutes: u64,
    one_hour: u64,
}

/// What the last call left in the cache.
#[derive(Clone, Copy, Debug)]
struct TimeLeft {
    /// Unix time of its last use, in milliseconds.
    at_ms: i64,
    /// Number of tokens that the provider has read or written.
    tokens: u64,
    /// Number of tokens of the whole prompt.
    prompt: u64,
    /// Lifetime of it.
    ttl: Ttl,
}

impl CacheTtl {
    /// Restores it from a transcript. The store has the time of the reply, not of the request, so a
    /// gap may seem shorter by the duration of the reply.
    pub(crate) fn of(transcript: &Transcript) -> Self {
        let mut cache_ttl = Self::default();
        for stored in &transcript.entries {
            match (stored.entry.kind, &stored.entry.reply) {
                (EntryKind::Compaction | EntryKind::Model, _) => cache_ttl.forget(),
                (_, Some(facts)) => drop(cache_ttl.called(stored.at_ms, &facts.usage, None)),
                (_, None) => {}
            }
        }
        cache_ttl
    }

    /// Forgets what was left: a summary has replaced it, or another model cannot read it.
    pub(crate) fn forget(&mut self) {
        self.left = None;
    }

    /// Returns the lifetime for the marks of a call that is made now: an hour if that would have
    /// been cheaper for all calls so far and this one. The first gap of more than five minutes
    /// decides, because it has cost a whole prompt.
    pub(crate) fn ttl(&self, at_ms: i64) -> Ttl {
        let prompt = self.left.map_or(0, |left| left.prompt);
        let [five_minutes, one_hour] = self.costs(at_ms, prompt);
        if one_hour < five_minutes {
            Ttl::OneHour
        } else {
            Ttl::FiveMinutes
        }
    }

    /// Returns how many tokens a call that is made now can read.
    pub(crate) fn readable(&self, at_ms: i64) -> u64 {
        let left = self
            .left
            .filter(|left| at_ms.saturating_sub(left.at_ms) < lifetime_ms(left.ttl));
        left.map_or(0, |left| left.tokens)
    }

    /// Notes a call, and returns what it missed of what was left.
    pub(crate) fn called(
        &mut self,
        at_ms: i64,
        usage: &Usage,
        told: Option<&CacheMiss>,
    ) -> Option<Missed> {
        let prompt = usage.prompt();
        if prompt == 0 {
            // It was cut off before the provider reported its usage.
            return None;
        }
        [self.five_minutes, self.one_hour] = self.costs(at_ms, prompt);
        let missed = self.missed(at_ms, usage, told);
        let ttl = match (usage.cache_write_1h, usage.cache_write_5m) {
            (1.., _) => Ttl::OneHour,
            (0, 1..) => Ttl::FiveMinutes,
            (0, 0) => self.left.map_or(Ttl::FiveMinutes, |left| left.ttl),
        };
        let tokens = usage
            .cache_read
            .saturating_add(usage.cache_write_5m)
            .saturating_add(usage.cache_write_1h);
        self.left = Some(TimeLeft {
            at_ms,
            tokens,
            prompt,
            ttl,
        });
        missed
    }

    /// Returns the cost of all prompts and one more, with marks of either lifetime.
    fn costs(&self, at_ms: i64, prompt: u64) -> [u64; 2] {
        let cost = |before: u64, ttl: Ttl, write: u64| {
            let readable = self
                .left
                .filter(|left| at_ms.saturating_sub(left.at_ms) < lifetime_ms(ttl));
            let read = readable.map_or(0, |left| left.prompt).min(prompt);
            before
                .saturating_add(read.saturating_mul(READ))
                .saturating_add((prompt - read).saturating_mul(write))
        };
        [
            cost(self.five_minutes, Ttl::FiveMinutes, FIVE_MINUTES),
            cost(self.one_hour, Ttl::OneHour, ONE_HOUR),
        ]
    }

    /// Returns what a call missed, and why as far as it is known.
    fn missed(&self, at_ms: i64, usage: &Usage, told: Option<&CacheMiss>) -> Option<Missed> {
        let left = self.left?;
        let tokens = left.tokens.saturating_sub(usage.cache_read);
        if tokens <= FEW.max(left.tokens / SMALL_PART) {
            return None;
        }
        let changed = told
            .map(|miss| miss.reason.as_str())
            .filter(|reason| reason.ends_with("_changed"));
        let why = match changed {
            Some(reason) => reason,
            None if at_ms.saturating_sub(left.at_ms) >= lifetime_ms(left.ttl) => "expired",
            None => "unknown",
        };
        Some(Missed {
            tokens,
            why: why.to_owned(),
        })
    }
}

/// Returns a lifetime in milliseconds.
fn lifetime_ms(ttl: Ttl) -> i64 {
    match ttl {
        Ttl::FiveMinutes => 300_000,
        Ttl::OneHour => 3_600_000,
    }
}
