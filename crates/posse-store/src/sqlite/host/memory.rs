//! The hosts of a store in memory: all in this process, and notified directly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_port::store::Wake;
use uuid::Uuid;

use super::Waker;
use crate::feed_watch::FeedWatch;

/// The hosts that are alive, with their wakers.
#[derive(Default)]
pub(in super::super) struct MemoryHosts {
    hosts: Mutex<BTreeMap<Uuid, Arc<Waker>>>,
    pub(super) feed: Arc<FeedWatch>,
}

impl MemoryHosts {
    pub(super) fn enter(&self, id: Uuid, waker: &Arc<Waker>) {
        self.hosts().insert(id, Arc::clone(waker));
    }

    pub(super) fn leave(&self, id: Uuid) {
        self.hosts().remove(&id);
    }

    pub(super) fn contains(&self, id: Uuid) -> bool {
        self.hosts().contains_key(&id)
    }

    /// Wakes a host, if it is alive.
    pub(in super::super) fn wake(&self, id: Uuid, wakes: impl IntoIterator<Item = Wake>) {
        if let Some(waker) = self.hosts().get(&id) {
            waker.wake(wakes);
        }
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<Uuid, Arc<Waker>>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
