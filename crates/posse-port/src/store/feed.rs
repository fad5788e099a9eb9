//! The feed of a realm: its commits, numbered without a gap in the order in which they became
//! durable.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use posse_protocol::{AgentId, MemberState};

use super::{Archive, Op, Order, StateChange, Step};

/// What a commit was about, as a set.
///
/// A topic says where to look, not what is there: it is also set for what was refused inside the
/// commit, and for what has changed again since.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Topics(u32);

impl Topics {
    /// The agent was created.
    pub const BIRTH: Self = Self(1);
    /// Entries of its transcript: those that the row counts.
    pub const ENTRIES: Self = Self(1 << 1);
    /// Its tool calls.
    pub const CALLS: Self = Self(1 << 2);
    /// Its state, mode, or result.
    pub const STATE: Self = Self(1 << 3);
    /// Its costs.
    pub const COSTS: Self = Self(1 << 4);
    /// Its inbox.
    pub const MAIL: Self = Self(1 << 5);
    /// Its background commands.
    pub const RUNS: Self = Self(1 << 6);
    /// The process that holds it.
    pub const HOLDER: Self = Self(1 << 7);
    /// Tasks of the realm.
    pub const TASKS: Self = Self(1 << 8);
    /// Teams, members and notes of the realm.
    pub const TEAMS: Self = Self(1 << 9);
    /// Requests between agents of the realm.
    pub const REQUESTS: Self = Self(1 << 10);

    /// Questions to a person.
    pub const QUESTIONS: Self = Self(1 << 11);

    const NAMES: [(Self, &'static str); 12] = [
        (Self::BIRTH, "birth"),
        (Self::ENTRIES, "entries"),
        (Self::CALLS, "calls"),
        (Self::STATE, "state"),
        (Self::COSTS, "costs"),
        (Self::MAIL, "mail"),
        (Self::RUNS, "runs"),
        (Self::HOLDER, "holder"),
        (Self::TASKS, "tasks"),
        (Self::TEAMS, "teams"),
        (Self::REQUESTS, "requests"),
        (Self::QUESTIONS, "questions"),
    ];

    /// Returns the set from its stored form. Topics of a newer posse are kept.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the form in which it is stored; it must never change.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Returns true if all of `others` are in the set.
    pub fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the names of the topics.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let named = Self::NAMES.into_iter();
        named.filter_map(move |(topic, name)| self.contains(topic).then_some(name))
    }

    fn only_if(self, condition: bool) -> Self {
        if condition { self } else { Self::default() }
    }
}

impl BitOr for Topics {
    type Output = Self;

    fn bitor(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

impl BitOrAssign for Topics {
    fn bitor_assign(&mut self, others: Self) {
        self.0 |= others.0;
    }
}

impl fmt::Debug for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A row of a realm's feed.
///
/// A step has one row, and each message that it delivers has another one after it, about the
/// recipient. An order of a person and an import have one without an agent; an agent that is taken,
/// released or freed has one about its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedRow {
    /// Its number: one more than that of the row before it, from 1.
    pub number: u64,
    /// The agent that it is about; `None` if it is about the realm.
    pub agent: Option<AgentId>,
    /// When the store wrote it, by its own clock.
    pub at_ms: i64,
    /// What changed.
    pub topics: Topics,
    /// The number of the first new entry, or of the message.
    pub seq: u64,
    /// The number of new entries or messages.
    pub count: u64,
}

/// A part of a realm's feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedPage {
    /// The last number of the realm, 0 if nothing was ever written there.
    pub head: u64,
    /// The rows after the one that was asked for, oldest first.
    pub rows: Vec<FeedRow>,
}

impl FeedPage {
    /// Returns true if rows after the number `after` were removed because of their age: then a
    /// reader that has read up to there must look at the realm itself, and go on after the head.
    pub fn has_gap(&self, after: u64) -> bool {
        match self.rows.first() {
            Some(first) => first.number > after + 1,
            // Less than that: the realm was removed, and made anew.
            None => self.head != after,
        }
    }

    /// Returns the agents that its rows are about, each once.
    pub fn agents(&self) -> Vec<AgentId> {
        let agents: BTreeSet<_> = self.rows.iter().filter_map(|row| row.agent).collect();
        agents.into_iter().collect()
    }
}

impl Step {
    /// Returns what it is about.
    pub fn topics(&self) -> Topics {
        let changes_state = self.state.is_some() || self.mode.is_some() || self.types.is_some();
        let mut topics = Topics::BIRTH.only_if(self.birth.is_some())
            | Topics::ENTRIES.only_if(!self.entries.is_empty())
            | Topics::CALLS.only_if(!self.calls.is_empty())
            | Topics::STATE.only_if(changes_state || self.starter.is_some())
            | Topics::COSTS.only_if(!self.charges.is_empty() || self.reserved.is_some())
            | Topics::MAIL.only_if(!self.mail.is_empty())
            | Topics::RUNS.only_if(!self.runs.is_empty())
            | Topics::QUESTIONS.only_if(!self.questions.is_empty());
        // Who ends gives back its tasks, teams and requests.
        let ends = match self.state {
            Some(StateChange::To(state) | StateChange::UnlessMail(state)) => {
                state.of_member() == MemberState::ShutDown
            }
            None => false,
        };
        topics |=
            (Topics::TASKS | Topics::TEAMS | Topics::REQUESTS | Topics::QUESTIONS).only_if(ends);
        for operation in &self.operations {
            topics |= operation.op.topics();
        }
        topics
    }
}

impl Order {
    /// Returns what it is about.
    pub fn topics(&self) -> Topics {
        let each = self.ops.iter().map(Op::topics);
        each.fold(Topics::default(), BitOr::bitor)
    }
}

impl Archive {
    /// What the import of an archive is about.
    pub const TOPICS: Topics = Topics(Topics::TASKS.0 | Topics::TEAMS.0 | Topics::MAIL.0);
}

impl Op {
    /// Returns what it is about, besides the mail that it delivers.
    fn topics(&self) -> Topics {
        match self {
            Self::Send { .. } => Topics::default(),
            Self::Charge { .. } => Topics::COSTS,
            Self::CreateTeam { .. }
            | Self::DeleteTeam { .. }
            | Self::Join { .. }
            | Self::HandOver { .. }
            | Self::WriteNote { .. } => Topics::TEAMS,
            // Its tasks are given back.
            Self::Leave { .. } => Topics::TEAMS | Topics::TASKS,
            Self::Request { .. } | Self::Respond { .. } => Topics::REQUESTS,
            Self::Answer { .. } => Topics::QUESTIONS,
            Self::CreateTask { .. }
            | Self::UpdateTask { .. }
            | Self::Claim { .. }
            | Self::ClaimNext { .. } => Topics::TASKS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_a_name_of_its_own() {
        let all = Topics::NAMES
            .into_iter()
            .fold(Topics::default(), |all, (topic, _)| all | topic);
        assert_eq!(all.bits(), (1 << Topics::NAMES.len()) - 1);
        let some = Topics::MAIL | Topics::BIRTH;
        assert_eq!(format!("{some:?}"), r#"{"birth", "mail"}"#);
        assert!(some.contains(Topics::MAIL) && !some.contains(Topics::MAIL | Topics::RUNS));
    }

    #[test]
    fn a_page_knows_what_it_lacks() {
        let row = |number| FeedRow {
            number,
            agent: None,
            at_ms: 0,
            topics: Topics::default(),
            seq: 0,
            count: 0,
        };
        let page = |head, numbers: &[u64]| FeedPage {
            head,
            rows: numbers.iter().copied().map(row).collect(),
        };
        assert!(!page(0, &[]).has_gap(0) && !page(7, &[]).has_gap(7));
        assert!(!page(7, &[3, 4]).has_gap(2) && page(7, &[3, 4]).has_gap(1));
        assert!(page(7, &[]).has_gap(6));
    }
}
