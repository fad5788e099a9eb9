//! What a batch has changed that hosts should know. They are notified after the commit
//! ([`super::notify`]): before it there is nothing to see.

use std::collections::{BTreeMap, BTreeSet};

use posse_protocol::{AgentId, ListId};
use uuid::Uuid;

/// What hosts should know when the batch is durable. More than needed does no harm: they look.
#[derive(Clone, Default)]
pub(super) struct Changes {
    /// Agents that got mail, by the host that holds them.
    pub(super) mail: BTreeMap<Uuid, BTreeSet<AgentId>>,
    /// Lists in which a task has become claimable.
    pub(super) lists: BTreeSet<ListId>,
    /// Hosts whose agents and tasks were set free.
    pub(super) freed: BTreeSet<Uuid>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.mail.is_empty() && self.lists.is_empty() && self.freed.is_empty()
    }

    /// An agent that a host holds got mail.
    pub(super) fn mail(&mut self, host: Uuid, agent: AgentId) {
        self.mail.entry(host).or_default().insert(agent);
    }
}
