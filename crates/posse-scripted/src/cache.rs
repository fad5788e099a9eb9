//! The prompt cache, as the providers describe theirs.
//!
//! It knows nothing of requests or clocks: a prefix and the current time go in, what was read and
//! written comes out.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use crate::prefix::{CacheTtl, Position, RequestPrefix, Section};

/// Number of positions that a breakpoint looks at, including itself.
const LOOK_BACK: usize = 20;

/// Number of positions of earlier prompts that are remembered for explaining misses.
const REMEMBERED_POSITIONS: usize = 1 << 20;

/// How a request's input is billed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Billing {
    pub(crate) input: u64,
    pub(crate) read: u64,
    pub(crate) write_5m: u64,
    pub(crate) write_1h: u64,
}

/// What a request does to the cache once it is admitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ticket {
    /// The entry that it reads, and when.
    read: Option<(u64, Duration)>,
    /// Entries that become readable when the reply begins.
    writes: Vec<(u64, CacheTtl, Duration)>,
}

/// An entry.
#[derive(Debug)]
struct CacheEntry {
    ttl: CacheTtl,
    expires: Duration,
}

/// The cache.
#[derive(Debug, Default)]
pub(crate) struct PromptCache {
    entries: HashMap<u64, CacheEntry>,
    sweep_at: usize,
    previous: HashMap<String, PreviousPrompt>,
    order: VecDeque<String>,
    remembered: usize,
}

/// An earlier prompt.
#[derive(Debug)]
struct PreviousPrompt {
    model: String,
    positions: Vec<Position>,
}

fn lifetime(ttl: CacheTtl) -> Duration {
    match ttl {
        CacheTtl::FiveMinutes => Duration::from_secs(300),
        CacheTtl::OneHour => Duration::from_secs(3600),
    }
}

impl PromptCache {
    /// Bills `prefix` by its marks. `minimum` is the smallest prefix that the model caches.
    pub(crate) fn bill(
        &self,
        prefix: &RequestPrefix,
        minimum: u64,
        now: Duration,
    ) -> (Billing, Ticket) {
        let positions = &prefix.positions;
        let marks: Vec<usize> = (0..positions.len())
            .filter(|&at| positions[at].mark.is_some())
            .collect();
        let hit = marks
            .iter()
            .filter_map(|&mark| {
                let first = (mark + 1).saturating_sub(LOOK_BACK);
                (first..=mark)
                    .rev()
                    .find(|&at| self.is_readable(&positions[at], minimum, now))
            })
            .max();
        let mut ticket = Ticket {
            read: hit.map(|at| (positions[at].hash, now)),
            writes: Vec::new(),
        };
        let mut write = [hit.map_or(0, |at| positions[at].tokens); 2];
        for &mark in &marks {
            let Position {
                hash,
                tokens,
                mark: ttl,
                ..
            } = positions[mark];
            let Some(ttl) = ttl.filter(|_| tokens >= minimum) else {
                continue;
            };
            ticket.writes.push((hash, ttl, now));
            let reach = &mut write[usize::from(ttl == CacheTtl::FiveMinutes)];
            *reach = tokens.max(*reach);
        }
        let [hour, five] = write;
        let read = hit.map_or(0, |at| positions[at].tokens);
        let end = hour.max(five);
        let billing = Billing {
            read,
            write_1h: hour - read,
            write_5m: end - hour,
            input: prefix.tokens() - end,
        };
        (billing, ticket)
    }

    /// Returns the tokens of the longest cached prefix, for providers that cache without marks.
    pub(crate) fn bill_unmarked(
        &self,
        prefix: &RequestPrefix,
        minimum: u64,
        now: Duration,
    ) -> (u64, Ticket) {
        let hit = prefix
            .positions
            .iter()
            .rev()
            .find(|at| self.is_readable(at, minimum, now));
        let read = hit.map_or(0, |at| at.tokens);
        let large = prefix.positions.iter().filter(|at| at.tokens >= minimum);
        (
            read,
            Ticket {
                read: None,
                writes: large
                    .map(|at| (at.hash, CacheTtl::FiveMinutes, now))
                    .collect(),
            },
        )
    }

    /// Renews the entry that a request reads, because it was admitted.
    pub(crate) fn renew(&mut self, ticket: &Ticket) {
        let read = ticket.read;
        let entry = read.and_then(|(hash, at)| Some((self.entries.get_mut(&hash)?, at)));
        if let Some((entry, at)) = entry {
            entry.expires = entry.expires.max(at + lifetime(entry.ttl));
        }
    }

    /// Makes a request's writes readable, because its reply has begun.
    pub(crate) fn begin(&mut self, ticket: &Ticket) {
        for &(hash, ttl, at) in &ticket.writes {
            let expires = at + lifetime(ttl);
            let entry = self
                .entries
                .entry(hash)
                .or_insert(CacheEntry { ttl, expires });
            if expires > entry.expires {
                *entry = CacheEntry { ttl, expires };
            }
        }
    }

    /// Removes expired entries whenever the cache has doubled in size.
    pub(crate) fn sweep(&mut self, now: Duration) {
        if self.entries.len() > self.sweep_at {
            self.entries.retain(|_, entry| entry.expires > now);
            // Waiting for the size to double keeps the cost of sweeps constant per entry.
            self.sweep_at = (2 * self.entries.len()).max(1 << 14);
        }
    }

    fn is_readable(&self, position: &Position, minimum: u64, now: Duration) -> bool {
        position.tokens >= minimum
            && self
                .entries
                .get(&position.hash)
                .is_some_and(|entry| entry.expires > now)
    }

    /// Remembers the prompt of the reply `id`, for explaining the misses of the next one.
    pub(crate) fn remember(&mut self, id: &str, model: &str, prefix: &RequestPrefix) {
        self.remembered += prefix.positions.len();
        self.order.push_back(id.to_owned());
        let prompt = PreviousPrompt {
            model: model.to_owned(),
            positions: prefix.positions.clone(),
        };
        self.previous.insert(id.to_owned(), prompt);
        while self.remembered > REMEMBERED_POSITIONS
            && let Some(oldest) = self.order.pop_front()
            && let Some(prompt) = self.previous.remove(&oldest)
        {
            self.remembered -= prompt.positions.len();
        }
    }

    /// Returns why `prefix` did not read what the reply `id` could have left; null if it did.
    pub(crate) fn explain(
        &self,
        id: &str,
        model: &str,
        prefix: &RequestPrefix,
        billing: &Billing,
    ) -> Value {
        let Some(previous) = self.previous.get(id) else {
            return json!({"type": "previous_message_not_found"});
        };
        let changed = previous.positions.iter().enumerate().find(|(at, old)| {
            prefix
                .positions
                .get(*at)
                .is_none_or(|new| new.hash != old.hash)
        });
        let whole = previous.positions.last().map_or(0, |last| last.tokens);
        if previous.model != model {
            return json!({"type": "model_changed", "cache_missed_input_tokens": whole});
        }
        let Some((at, old)) = changed else {
            let could_read = previous
                .positions
                .iter()
                .rev()
                .find(|old| old.mark.is_some());
            let expired =
                could_read.is_some_and(|old| billing.read < old.tokens && billing.read == 0);
            return if expired {
                json!({"type": "unavailable"})
            } else {
                Value::Null
            };
        };
        let section = prefix
            .positions
            .get(at)
            .map_or(old.section, |new| new.section.min(old.section));
        let reason = match section {
            Section::Tools => "tools_changed",
            Section::System => "system_changed",
            Section::Messages => "messages_changed",
        };
        let kept = at
            .checked_sub(1)
            .map_or(0, |before| previous.positions[before].tokens);
        json!({"type": reason, "cache_missed_input_tokens": whole - kept})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::Builder;

    const MINIMUM: u64 = 512;

    /// Returns a prompt of `blocks` messages of 1,000 bytes; marks at the given places.
    fn prompt(first: &str, blocks: usize, marks: &[(usize, &str)]) -> RequestPrefix {
        let mut builder = Builder::new("m");
        for at in 0..blocks {
            let filler = if at == 0 { first } else { "x" };
            let mut block = json!({"type": "text", "text": format!("{at}{}", filler.repeat(968))});
            if let Some((_, ttl)) = marks.iter().find(|(place, _)| *place == at) {
                block["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
            }
            builder.block(Section::Messages, "user", &block);
        }
        builder.finish()
    }

    fn bill(cache: &mut PromptCache, prefix: &RequestPrefix, now: u64) -> [u64; 4] {
        let (billing, ticket) = cache.bill(prefix, MINIMUM, Duration::from_secs(now));
        cache.renew(&ticket);
        cache.begin(&ticket);
        [
            billing.read,
            billing.write_1h,
            billing.write_5m,
            billing.input,
        ]
    }

    #[test]
    fn what_was_written_is_read_until_it_expires() {
        let cache = &mut PromptCache::default();
        let of = |blocks: usize| prompt("x", blocks, &[]).tokens();
        let three = prompt("x", 3, &[(2, "5m")]);
        assert_eq!(bill(cache, &three, 0), [0, 0, of(3), 0]);
        assert_eq!(
            bill(cache, &prompt("x", 5, &[(4, "5m")]), 299),
            [of(3), 0, of(5) - of(3), 0]
        );
        assert_eq!(
            bill(cache, &three, 598),
            [of(3), 0, 0, 0],
            "a read refreshes"
        );
        assert_eq!(bill(cache, &three, 898), [0, 0, of(3), 0], "expired");
        assert_eq!(
            bill(cache, &prompt("y", 3, &[(2, "5m")]), 899),
            [0, 0, of(3), 0],
            "another prefix"
        );
        assert_eq!(
            bill(cache, &prompt("x", 3, &[]), 899),
            [0, 0, 0, of(3)],
            "nothing without a mark"
        );
        assert_eq!(
            bill(cache, &prompt("x", 1, &[(0, "5m")]), 0),
            [0, 0, 0, of(1)],
            "below the minimum"
        );
    }

    #[test]
    fn a_breakpoint_sees_twenty_positions_and_itself_is_the_first() {
        let of = |blocks: usize| prompt("x", blocks, &[]).tokens();
        let check = |blocks: usize| {
            let cache = &mut PromptCache::default();
            bill(cache, &prompt("x", 5, &[(4, "5m")]), 0);
            bill(cache, &prompt("x", blocks, &[(blocks - 1, "5m")]), 1)[0]
        };
        assert_eq!(
            check(24),
            of(5),
            "nineteen blocks more: the old end is the twentieth position"
        );
        assert_eq!(check(25), 0, "twenty blocks more: out of sight");
    }

    #[test]
    fn hours_are_billed_before_minutes_and_nothing_is_readable_before_its_reply_begins() {
        let cache = &mut PromptCache::default();
        let of = |blocks: usize| prompt("x", blocks, &[]).tokens();
        let prefix = prompt("x", 9, &[(3, "1h"), (6, "5m")]);
        let (first, ticket) = cache.bill(&prefix, MINIMUM, Duration::ZERO);
        let expected = Billing {
            read: 0,
            write_1h: of(4),
            write_5m: of(7) - of(4),
            input: of(9) - of(7),
        };
        assert_eq!(first, expected);
        let (second, _) = cache.bill(&prefix, MINIMUM, Duration::ZERO);
        assert_eq!(second, expected, "a parallel request misses");
        cache.begin(&ticket);
        assert_eq!(bill(cache, &prefix, 1), [of(7), 0, 0, of(9) - of(7)]);
        assert_eq!(
            bill(cache, &prefix, 2000),
            [of(4), 0, of(7) - of(4), of(9) - of(7)],
            "the hour lives"
        );
    }

    #[test]
    fn a_request_that_is_not_admitted_renews_nothing() {
        let cache = &mut PromptCache::default();
        let three = prompt("x", 3, &[(2, "5m")]);
        bill(cache, &three, 0);
        let (refused, _) = cache.bill(&three, MINIMUM, Duration::from_secs(299));
        assert_eq!(refused.read, three.tokens());
        assert_eq!(bill(cache, &three, 300)[0], 0, "expired");
    }

    #[test]
    fn misses_are_explained() {
        let cache = &mut PromptCache::default();
        let three = prompt("x", 3, &[(2, "5m")]);
        let explain =
            |cache: &PromptCache, id: &str, model: &str, prefix: &RequestPrefix, read: u64| {
                let reason = cache.explain(
                    id,
                    model,
                    prefix,
                    &Billing {
                        read,
                        ..Billing::default()
                    },
                );
                reason["type"].as_str().unwrap_or("null").to_owned()
            };
        cache.remember("one", "m", &three);
        assert_eq!(
            explain(cache, "none", "m", &three, 0),
            "previous_message_not_found"
        );
        assert_eq!(
            explain(cache, "one", "m", &prompt("x", 5, &[]), 700),
            "null"
        );
        assert_eq!(
            explain(cache, "one", "m", &prompt("x", 5, &[]), 0),
            "unavailable"
        );
        assert_eq!(
            explain(cache, "one", "m", &prompt("y", 5, &[]), 0),
            "messages_changed"
        );
        assert_eq!(explain(cache, "one", "n", &three, 0), "model_changed");
    }
}
