//! A subscription: watches agents of this process from within it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use posse_port::Ports;
use posse_protocol::{AgentId, Detail, WatchTarget};

use crate::live::follower::FollowGuard;
use crate::live::registry::Registry;
use crate::live::viewers::{Viewed, Viewer};
use crate::live::wakeup::WakeReason;
use crate::supervise::Supervisor;

/// Watches agents of this process, until it is dropped. Nothing that they do depends on it.
pub struct Subscription {
    registry: Arc<Registry>,
    ports: Ports,
    supervisor: Supervisor,
    viewer: Arc<Viewer>,
    /// What keeps the feeds of the watched sessions followed, by their main agents.
    followed: Mutex<HashMap<AgentId, Arc<FollowGuard>>>,
}

impl Subscription {
    /// Returns one that watches nobody yet.
    pub(crate) fn new(registry: Arc<Registry>, ports: Ports, supervisor: Supervisor) -> Self {
        Self {
            registry,
            ports,
            supervisor,
            viewer: Arc::default(),
            followed: Mutex::default(),
        }
    }

    /// Watches something in this detail, or no longer. Agents that do not live here are seen once
    /// they do. Returns true if the agent, or one of the session, lives here: an agent that is
    /// named tells at once what it is doing.
    pub fn watch(&self, target: WatchTarget, detail: Option<Detail>) -> bool {
        self.registry.viewers.watch(&self.viewer, target, detail);
        let (WatchTarget::Agent(agent) | WatchTarget::Session(agent)) = target;
        let session = detail.and_then(|_| self.registry.session_of(agent));
        if let Some(session) = session {
            let means = (&self.ports, &self.supervisor, &self.registry.viewers);
            let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
            let follow = || self.registry.followers.follow(&session, means);
            followed.entry(session.root).or_insert_with(follow);
        }
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
