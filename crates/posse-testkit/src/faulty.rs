//! A store that fails on demand; everything else goes to a real one.

use std::sync::Arc;

use posse_port::BoxFuture;
use posse_port::store::{
    AgentFilter, AgentKey, AgentRecord, AgentRows, Archive, CallTier, Committed, EntryPage, Epoch,
    FeedPage, MailFilter, Membership, OpResult, OpenRequest, Order, Page, QuestionFilter,
    QuestionKey, QuestionRecord, RequestKey, RowFilter, SessionFilter, SessionKey, Step, Store,
    StoreError, SubtreeSpending, Taken, TaskFilter, TeamKey, Transcript, Wake,
};
use posse_protocol::{AgentId, ListId, Mail, Name, Note, RealmId, Task, TaskId, Team};

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

impl Store for Faulty {
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

    fn release(&self, agent: AgentId, epoch: Epoch) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.release(agent, epoch)
    }

    fn feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<FeedPage, StoreError>> {
        self.store.feed(realm, after, limit)
    }

    fn follow_feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<FeedPage, StoreError>> {
        self.store.follow_feed(realm, after, limit)
    }

    fn read(&self, agent: AgentId) -> BoxFuture<'_, Result<Transcript, StoreError>> {
        self.store.read(agent)
    }

    fn entries(
        &self,
        agent: AgentId,
        page: Page<u64>,
    ) -> BoxFuture<'_, Result<EntryPage, StoreError>> {
        self.store.entries(agent, page)
    }

    fn tiers(&self, agent: AgentId) -> BoxFuture<'_, Result<Vec<CallTier>, StoreError>> {
        self.store.tiers(agent)
    }

    fn sessions(
        &self,
        filter: SessionFilter,
        page: Page<SessionKey>,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>> {
        self.store.sessions(filter, page)
    }

    fn operate(&self, order: Order) -> BoxFuture<'_, Result<Vec<OpResult>, StoreError>> {
        self.store.operate(order)
    }

    fn woken(&self) -> BoxFuture<'_, Result<Vec<Wake>, StoreError>> {
        self.store.woken()
    }

    fn agents(
        &self,
        filter: AgentFilter,
        page: Page<AgentKey>,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>> {
        self.store.agents(filter, page)
    }

    fn rows(
        &self,
        realm: RealmId,
        filter: RowFilter,
    ) -> BoxFuture<'_, Result<AgentRows, StoreError>> {
        self.store.rows(realm, filter)
    }

    fn spending(
        &self,
        agents: Vec<AgentId>,
    ) -> BoxFuture<'_, Result<Vec<SubtreeSpending>, StoreError>> {
        self.store.spending(agents)
    }

    fn mail(
        &self,
        realm: RealmId,
        agent: AgentId,
        filter: MailFilter,
        page: Page<u64>,
    ) -> BoxFuture<'_, Result<Vec<Mail>, StoreError>> {
        self.store.mail(realm, agent, filter, page)
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

    fn membership(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> BoxFuture<'_, Result<Vec<Membership>, StoreError>> {
        self.store.membership(realm, agent)
    }

    fn notes(
        &self,
        list: ListId,
        page: Page<Name>,
    ) -> BoxFuture<'_, Result<Vec<Note>, StoreError>> {
        self.store.notes(list, page)
    }

    fn task(&self, list: ListId, id: TaskId) -> BoxFuture<'_, Result<Option<Task>, StoreError>> {
        self.store.task(list, id)
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

    fn requests(
        &self,
        realm: RealmId,
        agent: Option<AgentId>,
        page: Page<RequestKey>,
    ) -> BoxFuture<'_, Result<Vec<OpenRequest>, StoreError>> {
        self.store.requests(realm, agent, page)
    }

    fn questions(
        &self,
        filter: QuestionFilter,
        page: Page<QuestionKey>,
    ) -> BoxFuture<'_, Result<Vec<QuestionRecord>, StoreError>> {
        self.store.questions(filter, page)
    }

    fn export(
        &self,
        realm: RealmId,
        team: Name,
    ) -> BoxFuture<'_, Result<Option<Archive>, StoreError>> {
        self.store.export(realm, team)
    }

    fn import(&self, archive: Archive) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.import(archive)
    }
}
