//! The feed of each realm.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use posse_port::store::{FeedRow, Step, Topics};
use posse_protocol::{AgentId, RealmId};

use super::Model;

/// The rows of each realm. It is a history and not a state: two stores that differ in nothing else
/// are the same to the exploration.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed(BTreeMap<RealmId, Vec<FeedRow>>);

impl PartialEq for Feed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Feed {}

impl Hash for Feed {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Feed {
    /// Adds the row of a step.
    pub(super) fn step(&mut self, step: &Step) {
        let first = step.entries.first().map_or(0, |entry| entry.seq);
        let count = step.entries.len() as u64;
        self.add(step.realm, Some(step.agent), step.topics(), (first, count));
    }

    /// Adds the row of a message.
    pub(super) fn mail(&mut self, realm: RealmId, to: AgentId, number: u64) {
        self.add(realm, Some(to), Topics::MAIL, (number, 1));
    }

    /// Adds a row about the realm.
    pub(super) fn realm(&mut self, realm: RealmId, topics: Topics) {
        self.add(realm, None, topics, (0, 0));
    }

    /// Adds a row about the holder of an agent.
    pub(super) fn holder(&mut self, realm: RealmId, agent: AgentId) {
        self.add(realm, Some(agent), Topics::HOLDER, (0, 0));
    }

    fn add(
        &mut self,
        realm: RealmId,
        agent: Option<AgentId>,
        topics: Topics,
        (seq, count): (u64, u64),
    ) {
        let rows = self.0.entry(realm).or_default();
        let number = rows.len() as u64 + 1;
        rows.push(FeedRow {
            number,
            agent,
            at_ms: 0,
            topics,
            seq,
            count,
        });
    }
}

impl Model {
    /// Returns the feed of a realm; the model has no clock.
    pub fn feed(&self, realm: RealmId) -> &[FeedRow] {
        self.feed.0.get(&realm).map_or(&[], Vec::as_slice)
    }
}
