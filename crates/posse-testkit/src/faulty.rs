//! A store that fails when a test says so: everything else goes to a real one.

use std::sync::Arc;

use posse_protocol::AgentId;
use posse_runtime::port::BoxFuture;
use posse_runtime::port::store::{Epoch, Session, SessionFilter, Step, Store, StoreError, Taken, Transcript};

/// A real store in front of which steps can be refused.
pub struct Faulty {
    /// The real one.
    pub store: Arc<dyn Store>,
    /// Steps for which this is true are refused as if the disk were full.
    pub refuse: Box<dyn Fn(&Step) -> bool + Send + Sync>,
}

impl Store for Faulty {
    fn commit(&self, step: Step) -> BoxFuture<'_, Result<(), StoreError>> {
        if (self.refuse)(&step) {
            let source = Box::new(std::io::Error::from(std::io::ErrorKind::StorageFull));
            return Box::pin(std::future::ready(Err(StoreError::Full { place: "the test".into(), source })));
        }
        self.store.commit(step)
    }

    fn take(&self, agent: AgentId) -> BoxFuture<'_, Result<Taken, StoreError>> {
        self.store.take(agent)
    }

    fn release(&self, agent: AgentId, epoch: Epoch) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.release(agent, epoch)
    }

    fn read(&self, agent: AgentId) -> BoxFuture<'_, Result<Transcript, StoreError>> {
        self.store.read(agent)
    }

    fn sessions(
        &self,
        filter: SessionFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Session>, StoreError>> {
        self.store.sessions(filter, limit)
    }
}
