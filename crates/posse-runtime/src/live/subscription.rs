//! A subscription: watches agents of this process from within it.

use std::sync::Arc;

use posse_protocol::{Detail, WatchTarget};

use crate::live::registry::Registry;
use crate::live::viewers::{Viewed, Viewer};
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

    /// Watches something in this detail, or no longer. Agents that do not live here are seen once
    /// they do. Returns true if the agent, or one of the session, lives here: an agent that is
    /// named tells at once what it is doing.
    pub fn watch(&self, target: WatchTarget, detail: Option<Detail>) -> bool {
        self.registry.viewers.watch(&self.viewer, target, detail);
        match target {
            WatchTarget::Agent(agent) => self.registry.wake(agent, WakeReason::Watched),
            WatchTarget::Session(root) => self.registry.population(root) > 0,
        }
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
