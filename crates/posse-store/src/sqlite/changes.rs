//! Changes of a batch that hosts should know of. They are notified after the commit
//! ([`super::notify`]): before it there is nothing to see.

use std::collections::{BTreeMap, BTreeSet};

use posse_protocol::{AgentId, ListId};
use uuid::Uuid;

/// What hosts should know when the batch is durable. Too much does no harm, since they query.
#[derive(Clone, Default)]
pub(super) struct Changes {
    /// Agents that got mail, by the host that holds them.
    pub(super) mail: BTreeMap<Uuid, BTreeSet<AgentId>>,
    /// Lists in which a task has become claimable.
    pub(super) lists: BTreeSet<ListId>,
    /// Hosts whose agents and tasks were released.
    pub(super) freed: BTreeSet<Uuid>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.mail.is_empty() && self.lists.is_empty() && self.freed.is_empty()
    }

    /// Notes that an agent of a host got mail.
    pub(super) fn mail(&mut self, host: Uuid, agent: AgentId) {
        self.mail.entry(host).or_default().insert(agent);
    }
}
