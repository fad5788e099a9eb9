//! Reuse: what an agent's calls leave in the provider's cache, for how long it pays to keep it there, and
//! what of it was not found again. Pure.

#[cfg(test)]
mod tests;

use posse_protocol::{EntryKind, Missed, Usage};

use posse_port::model::{CacheMiss, Ttl};
use posse_port::store::Transcript;

/// What a token costs that is read from the cache, written to it for five minutes, and for an hour, in
/// hundredths of one that is neither. Models differ a little in the first, hardly in the others.
const READ: u64 = 10;
const FIVE_MINUTES: u64 = 125;
const ONE_HOUR: u64 = 200;

/// Less is no miss: providers count in steps, and round a prompt's end to them.
const FEW: u64 = 64;
/// The same as a part of a large prompt.
const SMALL_PART: u64 = 100;

/// What is known of an agent's calls. A fork begins with its parent's: that is what it can read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheTtl {
    left: Option<TimeLeft>,
    /// What all prompts so far would have cost with marks of either length.
    five_minutes: u64,
    one_hour: u64,
}

/// What the last call left in the cache.
#[derive(Clone, Copy, Debug)]
struct TimeLeft {
    /// When it was last used, in milliseconds of Unix time.
    at_ms: i64,
    /// How much the provider said that it has read or written.
    tokens: u64,
    /// The whole prompt: so much would be left with any marks.
    prompt: u64,
    /// For how long it is kept.
    ttl: Ttl,
}

impl CacheTtl {
    /// The same from what a store has. When a reply was kept stands there, not when it was asked for: a gap
    /// may seem shorter than it was, by as long as the reply took.
    pub(crate) fn of(transcript: &Transcript) -> Self {
        let mut cache_ttl = Self::default();
        for stored in &transcript.entries {
            match (stored.entry.kind, &stored.entry.reply) {
                (EntryKind::Compaction, _) => cache_ttl.compacted(),
                (_, Some(facts)) => drop(cache_ttl.called(stored.at_ms, &facts.usage, None)),
                (_, None) => {}
            }
        }
        cache_ttl
    }

    /// A summary has taken the place of what was left.
    pub(crate) fn compacted(&mut self) {
        self.left = None;
    }

    /// For how long the marks of a call should last that is made now: an hour if that would have been
    /// cheaper for all calls so far and this one. A gap of more than five minutes is known before the call
    /// that ends it, and has cost a whole prompt: the first one decides.
    pub(crate) fn ttl(&self, at_ms: i64) -> Ttl {
        let prompt = self.left.map_or(0, |left| left.prompt);
        let [five_minutes, one_hour] = self.costs(at_ms, prompt);
        if one_hour < five_minutes {
            Ttl::OneHour
        } else {
            Ttl::FiveMinutes
        }
    }

    /// A call was made: how much of what was left it has missed.
    pub(crate) fn called(
        &mut self,
        at_ms: i64,
        usage: &Usage,
        told: Option<&CacheMiss>,
    ) -> Option<Missed> {
        let prompt = usage.prompt();
        if prompt == 0 {
            // It was cut off before the provider said what it had read.
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

    /// What all prompts and a next one would have cost with marks of either length.
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

fn lifetime_ms(ttl: Ttl) -> i64 {
    match ttl {
        Ttl::FiveMinutes => 300_000,
        Ttl::OneHour => 3_600_000,
    }
}
