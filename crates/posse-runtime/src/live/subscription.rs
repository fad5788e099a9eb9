//! A subscription: watches agents of this process from within it.

use std::sync::Arc;

use posse_protocol::{AgentId, Detail};

use crate::live::registry::Registry;
use crate::live::viewers::{Target, Viewed, Viewer};
use crate::live::wakeup::WakeReason;

/// Watches agents of this process, until it is dropped. Nothing that they do depends on it.
pub struct Subscription {
    registry: Arc<Registry>,
    viewer: Arc<Viewer>,
}

impl Subscription {
    /// Returns one that watches nobody yet.
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        let viewer = Arc::default();
        Self { registry, viewer }
    }

    /// Watches an agent in this detail, or no longer. One that does not live here is seen once it
    /// does. Returns true if it lives here: then it tells at once what it is doing.
    pub fn watch(&self, agent: AgentId, detail: Option<Detail>) -> bool {
        let viewers = &self.registry.viewers;
        viewers.watch(&self.viewer, Target::Agent(agent), detail);
        self.registry.wake(agent, WakeReason::Watched)
    }

    /// Watches all agents of a session that live here, now or later, or no longer. The session is
    /// named by its main agent.
    pub fn watch_session(&self, root: AgentId, detail: Option<Detail>) {
        let viewers = &self.registry.viewers;
        viewers.watch(&self.viewer, Target::Session(root), detail);
    }

    /// Waits for what comes next. Dropping the future loses nothing.
    pub async fn next(&self) -> Viewed {
        self.viewer.next().await
    }

    /// Returns what comes next, if it is there.
    pub fn try_next(&self) -> Option<Viewed> {
        self.viewer.try_next()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.registry.viewers.leave(&self.viewer);
    }
}
