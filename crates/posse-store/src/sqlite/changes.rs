//! Changes of a batch that hosts should know of. They are notified after the commit
//! ([`super::notify`]): before it there is nothing to see.

use std::collections::{BTreeMap, BTreeSet};

use posse_protocol::{AgentId, ListId, RealmId};
use uuid::Uuid;

use super::feed::{NewFeedRow, NewFeedRows};

/// What hosts should know when the batch is durable. Too much does no harm, since they query.
#[derive(Clone, Default)]
pub(super) struct Changes {
    /// Agents that got mail, by the host that holds them.
    pub(super) mail: BTreeMap<Uuid, BTreeSet<AgentId>>,
    /// Lists in which a task has become claimable.
    pub(super) lists: BTreeSet<ListId>,
    /// Hosts whose agents and tasks were released.
    pub(super) freed: BTreeSet<Uuid>,
    /// Rows of the feed, which the end of the batch writes.
    pub(super) feed: NewFeedRows,
}

impl Changes {
    /// Returns true if no host needs to know anything; the feed is for readers.
    pub(super) fn is_empty(&self) -> bool {
        self.mail.is_empty() && self.lists.is_empty() && self.freed.is_empty()
    }

    /// Adds a row to the feed of a realm.
    pub(super) fn feed(&mut self, realm: RealmId, row: NewFeedRow) {
        self.feed.entry(realm).or_default().push(row);
    }

    /// Notes that an agent of a host got mail.
    pub(super) fn mail(&mut self, host: Uuid, agent: AgentId) {
        self.mail.entry(host).or_default().insert(agent);
    }
}
