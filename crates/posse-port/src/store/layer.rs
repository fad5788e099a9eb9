//! A store on top of another: what it adds, and everything else as the store below does it.

use posse_protocol::{AgentId, ListId, Mail, Name, Note, RealmId, Task, TaskId, Team};

use super::{
    AgentFilter, AgentKey, AgentRecord, AgentRows, Archive, CallTier, Committed, EntryPage, Epoch,
    FeedPage, MailFilter, Membership, OpResult, OpenRequest, Order, Page, QuestionFilter,
    QuestionKey, QuestionRecord, RequestKey, RowFilter, SessionFilter, SessionKey, Step, Store,
    StoreError, SubtreeSpending, Taken, TaskFilter, TeamKey, Transcript, Wake,
};
use crate::BoxFuture;

/// Writes the trait and its blanket implementation from one list of the store's methods.
macro_rules! layer {
    ($($name:ident($($word:ident: $kind:ty),*) -> $answer:ty;)*) => {
        /// A store that adds something to another. Each method is the one of [`Store`] with the
        /// same name, and passes the call on unless it is overridden. What overrides
        /// [`commit`](StoreLayer::commit) must pass each step on as it is, at most once and in the
        /// order of the calls: the promises of [`Store`] are those of the whole.
        pub trait StoreLayer: Send + Sync {
            /// Returns the store below.
            fn below(&self) -> &dyn Store;

            $(
                #[doc = concat!("See [`Store::", stringify!($name), "`].")]
                fn $name(&self, $($word: $kind),*) -> BoxFuture<'_, Result<$answer, StoreError>> {
                    self.below().$name($($word),*)
                }
            )*
        }

        impl<L: StoreLayer> Store for L {
            $(
                fn $name(&self, $($word: $kind),*) -> BoxFuture<'_, Result<$answer, StoreError>> {
                    StoreLayer::$name(self, $($word),*)
                }
            )*
        }
    };
}

layer! {
    commit(step: Step) -> Committed;
    operate(order: Order) -> Vec<OpResult>;
    take(agent: AgentId) -> Taken;
    release(agent: AgentId, epoch: Epoch) -> ();
    woken() -> Vec<Wake>;
    feed(realm: RealmId, after: u64, limit: usize) -> FeedPage;
    follow_feed(realm: RealmId, after: u64, limit: usize) -> FeedPage;
    read(agent: AgentId) -> Transcript;
    entries(agent: AgentId, page: Page<u64>) -> EntryPage;
    tiers(agent: AgentId) -> Vec<CallTier>;
    sessions(filter: SessionFilter, page: Page<SessionKey>) -> Vec<AgentRecord>;
    agents(filter: AgentFilter, page: Page<AgentKey>) -> Vec<AgentRecord>;
    rows(realm: RealmId, filter: RowFilter) -> AgentRows;
    spending(agents: Vec<AgentId>) -> Vec<SubtreeSpending>;
    mail(realm: RealmId, agent: AgentId, filter: MailFilter, page: Page<u64>) -> Vec<Mail>;
    teams(realm: Option<RealmId>, page: Page<TeamKey>) -> Vec<Team>;
    membership(realm: RealmId, agent: AgentId) -> Vec<Membership>;
    notes(list: ListId, page: Page<Name>) -> Vec<Note>;
    task(list: ListId, id: TaskId) -> Option<Task>;
    tasks(list: ListId, filter: TaskFilter, page: Page<TaskId>) -> Vec<Task>;
    requests(realm: RealmId, agent: Option<AgentId>, page: Page<RequestKey>) -> Vec<OpenRequest>;
    questions(filter: QuestionFilter, page: Page<QuestionKey>) -> Vec<QuestionRecord>;
    export(realm: RealmId, team: Name) -> Option<Archive>;
    import(archive: Archive) -> ();
}
