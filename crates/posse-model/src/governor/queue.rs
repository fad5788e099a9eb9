//! The queue of calls that wait: fair between sessions, and in a session between its teams and the
//! subtrees of its agents.
//!
//! Every level is served by virtual time. A member's tag is the service that it has had; the lowest
//! tag is next. Who comes, or comes back after a pause, begins at the level's own time, so that
//! nobody saves up turns. A member is forgotten as soon as its tag says nothing any more.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use posse_port::model::{CallPriority, Lineage};

/// Number of calls for people in a row, while others wait.
const PEOPLE_IN_A_ROW: u32 = 8;
/// Number of calls in a row that read a cached prefix, while others of the subtree wait.
const WARM_IN_A_ROW: u32 = 3;

/// A call that waits or is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(pub(super) u64);

/// Calls that wait.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    people: Group,
    usual: Group,
    /// Calls for people that were served in a row while others waited.
    row: u32,
    places: HashMap<Ticket, QueuePlace>,
}

/// Where a call stands.
#[derive(Debug)]
pub(super) struct QueuePlace {
    path: Vec<Key>,
    priority: CallPriority,
    warm: bool,
    /// Order of arrival in its subtree.
    order: u64,
    /// What it takes of its subtree's share.
    cost: u64,
}

impl QueuePlace {
    pub(super) fn new(
        lineage: &Lineage,
        priority: CallPriority,
        warm: bool,
        order: u64,
        cost: u64,
    ) -> Self {
        let session = Key::Session(lineage.session.clone());
        let team = lineage.team.clone().map(Key::Team);
        let subtree = Key::Subtree(lineage.subtree.clone());
        Self {
            path: [Some(session), team, Some(subtree)]
                .into_iter()
                .flatten()
                .collect(),
            priority,
            warm,
            order,
            cost,
        }
    }
}

impl FairQueue {
    pub(super) fn push(&mut self, ticket: Ticket, place: QueuePlace) {
        self.group(place.priority).push(&place.path, &place, ticket);
        self.places.insert(ticket, place);
    }

    /// Returns the call that is next.
    pub(super) fn peek(&self) -> Option<Ticket> {
        match self.next_is_for_people() {
            true => self.people.peek(),
            false => self.usual.peek(),
        }
    }

    /// Takes the call that is next.
    pub(super) fn pop(&mut self) -> Option<Ticket> {
        let next = self.peek()?;
        let place = self.places.remove(&next)?;
        let people = self.next_is_for_people();
        self.row = match people && !self.usual.is_empty() {
            true => self.row + 1,
            false => 0,
        };
        self.group(place.priority).pop(place.cost);
        Some(next)
    }

    /// Removes a call. Returns true if it was waiting.
    pub(super) fn remove(&mut self, ticket: Ticket) -> bool {
        let Some(place) = self.places.remove(&ticket) else {
            return false;
        };
        self.group(place.priority).remove(&place.path, &place);
        true
    }

    /// Takes all calls.
    pub(super) fn drain(&mut self) -> Vec<Ticket> {
        let mut all: Vec<Ticket> = std::mem::take(self).places.into_keys().collect();
        all.sort_unstable();
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn next_is_for_people(&self) -> bool {
        !self.people.is_empty() && (self.usual.is_empty() || self.row < PEOPLE_IN_A_ROW)
    }

    fn group(&mut self, priority: CallPriority) -> &mut Group {
        match priority {
            CallPriority::Person => &mut self.people,
            CallPriority::Usual => &mut self.usual,
        }
    }
}

/// A member's name in its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Session(String),
    Team(String),
    Subtree(String),
}

/// Members that share what the group gets.
#[derive(Debug, Default)]
struct Group {
    /// Virtual time: the service that a member has had that was always waiting.
    now: u64,
    arrivals: u64,
    /// Members with calls that wait, by tag and arrival.
    active: BTreeSet<(u64, u64, Key)>,
    /// Members without, whose tags are still ahead of `now`.
    idle: BTreeSet<(u64, Key)>,
    members: HashMap<Key, Member>,
}

#[derive(Debug)]
struct Member {
    tag: u64,
    arrived: u64,
    line: Line,
}

/// What waits of a member.
#[derive(Debug)]
enum Line {
    Group(Group),
    Calls(Calls),
}

impl Line {
    fn is_empty(&self) -> bool {
        match self {
            Self::Group(group) => group.is_empty(),
            Self::Calls(calls) => calls.is_empty(),
        }
    }
}

impl Group {
    fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    fn push(&mut self, path: &[Key], place: &QueuePlace, ticket: Ticket) {
        let Some((key, rest)) = path.split_first() else {
            return;
        };
        // Who comes goes before those whose turn it is at the same time.
        let now = self.now.saturating_sub(1);
        let member = self.members.entry(key.clone()).or_insert_with(|| Member {
            tag: now,
            arrived: 0,
            line: match rest.is_empty() {
                true => Line::Calls(Calls::default()),
                false => Line::Group(Group::default()),
            },
        });
        if member.line.is_empty() {
            self.idle.remove(&(member.tag, key.clone()));
            member.tag = member.tag.max(now);
            self.arrivals += 1;
            member.arrived = self.arrivals;
            self.active
                .insert((member.tag, member.arrived, key.clone()));
        }
        match &mut member.line {
            Line::Group(group) => group.push(rest, place, ticket),
            Line::Calls(calls) => calls.push(place, ticket),
        }
    }

    fn peek(&self) -> Option<Ticket> {
        let (_, _, key) = self.active.first()?;
        match &self.members.get(key)?.line {
            Line::Group(group) => group.peek(),
            Line::Calls(calls) => calls.peek(),
        }
    }

    /// Takes the call that is next and charges its cost.
    fn pop(&mut self, cost: u64) {
        let sharers = self.active.len() as u64;
        let Some((_, _, key)) = self.active.pop_first() else {
            return;
        };
        let Some(member) = self.members.get_mut(&key) else {
            return;
        };
        match &mut member.line {
            Line::Group(group) => group.pop(cost),
            Line::Calls(calls) => calls.pop(),
        }
        member.tag += cost;
        if member.line.is_empty() {
            self.idle.insert((member.tag, key));
        } else {
            self.active.insert((member.tag, member.arrived, key));
        }
        // It advances even while only newcomers are served: otherwise an endless stream of them
        // would hold up the others.
        self.now += cost / sharers.max(1);
        self.tidy();
    }

    fn remove(&mut self, path: &[Key], place: &QueuePlace) {
        let Some((key, rest)) = path.split_first() else {
            return;
        };
        let Some(member) = self.members.get_mut(key) else {
            return;
        };
        match &mut member.line {
            Line::Group(group) => group.remove(rest, place),
            Line::Calls(calls) => calls.remove(place),
        }
        if member.line.is_empty() {
            self.active
                .remove(&(member.tag, member.arrived, key.clone()));
            self.idle.insert((member.tag, key.clone()));
        }
        self.tidy();
    }

    /// Forgets members whose tags say nothing any more: `now` has passed them, or nobody waits.
    fn tidy(&mut self) {
        let Some((lowest, _, _)) = self.active.first() else {
            *self = Self::default();
            return;
        };
        self.now = self.now.max(*lowest);
        while let Some((tag, _)) = self.idle.first()
            && *tag <= self.now
        {
            if let Some((_, key)) = self.idle.pop_first() {
                self.members.remove(&key);
            }
        }
    }
}

/// Calls of one subtree, in the order of their arrival.
#[derive(Debug, Default)]
struct Calls {
    /// Those that read a cached prefix, which go first.
    warm: BTreeMap<u64, Ticket>,
    cold: BTreeMap<u64, Ticket>,
    /// Warm calls that were served in a row while cold ones waited.
    row: u32,
}

impl Calls {
    fn is_empty(&self) -> bool {
        self.warm.is_empty() && self.cold.is_empty()
    }

    fn line(&mut self, place: &QueuePlace) -> &mut BTreeMap<u64, Ticket> {
        match place.warm {
            true => &mut self.warm,
            false => &mut self.cold,
        }
    }

    fn push(&mut self, place: &QueuePlace, ticket: Ticket) {
        self.line(place).insert(place.order, ticket);
    }

    fn next_is_warm(&self) -> bool {
        !self.warm.is_empty() && (self.cold.is_empty() || self.row < WARM_IN_A_ROW)
    }

    fn peek(&self) -> Option<Ticket> {
        let line = match self.next_is_warm() {
            true => &self.warm,
            false => &self.cold,
        };
        line.first_key_value().map(|(_, ticket)| *ticket)
    }

    fn pop(&mut self) {
        if self.next_is_warm() {
            self.warm.pop_first();
            self.row += u32::from(!self.cold.is_empty());
        } else {
            self.cold.pop_first();
            self.row = 0;
        }
    }

    fn remove(&mut self, place: &QueuePlace) {
        self.line(place).remove(&place.order);
    }
}
