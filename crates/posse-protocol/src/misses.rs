//! What was missed in the prompt cache: how much, by whom and why. However many agents missed something,
//! few are named; the sums are of all.

use std::cmp::Reverse;

use crate::{AgentId, Missed, Usage};

/// So many agents are named at most.
const NAMED: usize = 32;
/// So many reasons are told apart at most; a provider may have any word for them.
const REASONS: usize = 16;

/// What an agent took from the cache and what it missed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMisses {
    /// The agent.
    pub agent: AgentId,
    /// Its path in the tree.
    pub path: String,
    /// What it used.
    pub usage: Usage,
    /// What it missed, by reason.
    pub missed: Vec<Missed>,
}

impl AgentMisses {
    /// All that it missed, in tokens.
    pub fn tokens(&self) -> u64 {
        sum(&self.missed)
    }
}

/// What agents missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// All of it, by reason.
    pub missed: Vec<Missed>,
    /// Who missed something, those that missed most first, 32 at most.
    pub agents: Vec<AgentMisses>,
    /// How many others did.
    pub others: u64,
}

impl Misses {
    /// All that was missed, in tokens.
    pub fn tokens(&self) -> u64 {
        sum(&self.missed)
    }

    /// Counts a miss. `line` is what its agent has come to with it; `again` says that it missed something
    /// before.
    pub fn count(&mut self, missed: &Missed, line: &AgentMisses, again: bool) {
        add(&mut self.missed, missed);
        self.update(line, again);
    }

    /// An agent of those that missed something has come to this. Who is not named now may be then: what an
    /// agent missed only grows, so that the ones that are named are always those that missed most.
    pub fn update(&mut self, line: &AgentMisses, again: bool) {
        match self
            .agents
            .iter_mut()
            .find(|known| known.agent == line.agent)
        {
            Some(known) => known.clone_from(line),
            None => {
                self.others = self.others.saturating_sub(u64::from(again));
                self.agents.push(line.clone());
            }
        }
        self.cut();
    }

    /// Adds what was missed at another time. Who was not named in both counts as another each time.
    pub fn append(&mut self, more: Self) {
        for missed in &more.missed {
            add(&mut self.missed, missed);
        }
        for line in more.agents {
            match self
                .agents
                .iter_mut()
                .find(|known| known.agent == line.agent)
            {
                Some(known) => {
                    known.usage += line.usage;
                    line.missed
                        .iter()
                        .for_each(|missed| add(&mut known.missed, missed));
                }
                None => self.agents.push(line),
            }
        }
        self.others = self.others.saturating_add(more.others);
        self.cut();
    }

    fn cut(&mut self) {
        self.agents.sort_by_key(|line| Reverse(line.tokens()));
        let others = self.agents.len().saturating_sub(NAMED);
        self.agents.truncate(NAMED);
        self.others = self.others.saturating_add(others as u64);
    }
}

/// Adds a miss to sums by reason.
pub fn add(sums: &mut Vec<Missed>, more: &Missed) {
    let is_full = sums.len() >= REASONS;
    match sums.iter_mut().position(|sum| sum.why == more.why) {
        Some(at) => sums[at].tokens = sums[at].tokens.saturating_add(more.tokens),
        None if is_full => {
            sums[REASONS - 1].tokens = sums[REASONS - 1].tokens.saturating_add(more.tokens)
        }
        None if sums.len() + 1 == REASONS => sums.push(Missed {
            why: "other".into(),
            ..more.clone()
        }),
        None => sums.push(more.clone()),
    }
}

fn sum(missed: &[Missed]) -> u64 {
    missed
        .iter()
        .fold(0, |sum, missed| sum.saturating_add(missed.tokens))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn miss(tokens: u64, why: &str) -> Missed {
        Missed {
            tokens,
            why: why.into(),
        }
    }

    fn line(agent: u128, tokens: u64) -> AgentMisses {
        let missed = vec![miss(tokens, "expired")];
        AgentMisses {
            agent: Uuid::from_u128(agent).into(),
            path: "/a".into(),
            usage: Usage::default(),
            missed,
        }
    }

    #[test]
    fn those_that_missed_most_are_named_and_all_are_counted() {
        let mut misses = Misses::default();
        for agent in 0..1_000_u128 {
            misses.count(
                &miss(100 + agent as u64 % 7, "expired"),
                &line(agent, 100 + agent as u64 % 7),
                false,
            );
        }
        // One that was not named misses again, and comes to more than any other.
        misses.count(&miss(50, "tools_changed"), &line(0, 150), true);
        let sum: u64 = (0..1_000_u64).map(|agent| 100 + agent % 7).sum();
        assert_eq!(
            misses.missed,
            [miss(sum, "expired"), miss(50, "tools_changed")]
        );
        assert_eq!(
            (misses.agents.len(), misses.others, misses.tokens()),
            (32, 968, sum + 50)
        );
        assert_eq!(misses.agents[0], line(0, 150));
        assert!(misses.agents[1..].iter().all(|line| line.tokens() == 106));
    }

    #[test]
    fn two_times_add_up() {
        let mut misses = Misses::default();
        misses.count(&miss(5, "expired"), &line(1, 5), false);
        let mut later = Misses::default();
        later.count(&miss(9, "expired"), &line(2, 9), false);
        later.count(&miss(7, "expired"), &line(1, 7), false);
        misses.append(later);
        assert_eq!(
            (misses.missed.as_slice(), misses.others),
            (&[miss(21, "expired")][..], 0)
        );
        assert_eq!(misses.agents, [line(1, 12), line(2, 9)]);
    }

    #[test]
    fn reasons_have_a_bound_and_lose_no_token() {
        let mut sums = Vec::new();
        for why in 0..100 {
            add(&mut sums, &miss(3, &format!("reason {why}")));
        }
        assert_eq!((sums.len(), sum(&sums)), (REASONS, 300));
        assert_eq!(sums.last(), Some(&miss(3 * 85, "other")));
    }
}
