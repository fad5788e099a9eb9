//! A store that fails on demand; everything else goes to a real one.

use std::sync::Arc;

use posse_port::BoxFuture;
use posse_port::store::{
    Committed, Page, Step, Store, StoreError, StoreLayer, Taken, TaskFilter, TeamKey,
};
use posse_protocol::{AgentId, ListId, RealmId, Task, TaskId, Team};

/// A real store behind a layer that can refuse steps and delay calls.
pub struct Faulty {
    /// The real store.
    pub store: Arc<dyn Store>,
    /// Steps for which this is true are refused as if the disk were full.
    pub refuse: Box<dyn Fn(&Step) -> bool + Send + Sync>,
    /// Delays a call before it reaches the real store.
    pub before: Box<dyn Fn(StoreCall) -> BoxFuture<'static, ()> + Send + Sync>,
}

/// A call that can be delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreCall {
    /// [`Store::take`].
    Take,
    /// [`Store::teams`].
    Teams,
    /// [`Store::tasks`], for those that an agent may take.
    ReadyTasks,
}

impl Faulty {
    /// A store that never fails.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            refuse: Box::new(|_| false),
            before: Box::new(|_| Box::pin(std::future::ready(()))),
        }
    }
}

impl StoreLayer for Faulty {
    fn below(&self) -> &dyn Store {
        &*self.store
    }

    fn commit(&self, step: Step) -> BoxFuture<'_, Result<Committed, StoreError>> {
        if (self.refuse)(&step) {
            let source = Box::new(std::io::Error::from(std::io::ErrorKind::StorageFull));
            return Box::pin(std::future::ready(Err(StoreError::Full {
                place: "the test".into(),
                source,
            })));
        }
        self.store.commit(step)
    }

    fn take(&self, agent: AgentId) -> BoxFuture<'_, Result<Taken, StoreError>> {
        let before = (self.before)(StoreCall::Take);
        Box::pin(async move {
            before.await;
            self.store.take(agent).await
        })
    }

    fn teams(
        &self,
        realm: Option<RealmId>,
        page: Page<TeamKey>,
    ) -> BoxFuture<'_, Result<Vec<Team>, StoreError>> {
        let before = (self.before)(StoreCall::Teams);
        Box::pin(async move {
            before.await;
            self.store.teams(realm, page).await
        })
    }

    fn tasks(
        &self,
        list: ListId,
        filter: TaskFilter,
        page: Page<TaskId>,
    ) -> BoxFuture<'_, Result<Vec<Task>, StoreError>> {
        let before = (filter.ready.is_some()).then(|| (self.before)(StoreCall::ReadyTasks));
        Box::pin(async move {
            if let Some(before) = before {
                before.await;
            }
            self.store.tasks(list, filter, page).await
        })
    }
}
