//! The store port on SQLite: one file, written by one thread per process.
//!
//! This file owns the value that callers hold. Steps go to the writer ([`writer`]), which commits
//! them in batches. Queries use connections of their own ([`read`]) and never wait for a writer.

mod batch;
mod bell;
mod changes;
mod charge;
mod claim;
mod column;
mod content;
mod error;
mod feed;
mod feed_listener;
mod free;
mod host;
mod host_rows;
mod job;
mod list;
pub(crate) mod maintain;
mod names;
mod notify;
mod operation;
mod place;
#[cfg(test)]
mod plans;
mod read;
mod schema;
mod shared;
mod step;
mod timing;
mod turnstile;
mod write_gate;
mod writer;

use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::store::{
    AgentFilter, AgentKey, AgentRecord, AgentRows, Archive, CallTier, Committed, EntryPage, Epoch,
    FeedPage, MailFilter, Membership, OpResult, OpenRequest, Order, Page, QuestionFilter,
    QuestionKey, QuestionRecord, RequestKey, RowFilter, SessionFilter, SessionKey, Step, Store,
    StoreError, SubtreeSpending, Taken, TaskFilter, TeamKey, Transcript, Wake,
};
use posse_protocol::{AgentId, ListId, Mail, Name, Note, RealmId, Task, TaskId, Team};
use tokio::sync::{mpsc, oneshot};

use crate::extent::Extent;
use crate::take_guard::TakeGuard;
use crate::write_outcome::{WriteAnswer, WriteOutcome};
use error::SqliteFailure;
use feed_listener::FeedListener;
use job::{SqliteJob, WriteRequest};
use place::DatabasePlace;
use shared::SharedState;

pub use error::{Trouble, trouble};
pub use names::{NamedSession, StoredName, StoredNames};
pub use timing::Timing;
pub use write_gate::WritePause;

/// Number of steps that may wait for the writer; when it is full, callers wait.
const QUEUE: usize = 4096;

/// A store in one SQLite file.
///
/// Each value is a host of its own: an agent that one of them holds is refused to the others, in
/// this process and in any other.
pub struct Sqlite {
    place: DatabasePlace,
    shared: Arc<SharedState>,
    /// None only while dropping: the writer ends when it is gone.
    jobs: Option<mpsc::Sender<SqliteJob>>,
    writer: Option<JoinHandle<()>>,
    /// Answers to the release of what dead hosts left. The first query waits for them, so that no
    /// task is shown as in progress that nobody works on.
    clearing: Mutex<Vec<oneshot::Receiver<WriteOutcome>>>,
    /// Started by the first reader that waits for a feed.
    feed_listener: Mutex<Option<FeedListener>>,
}

impl Sqlite {
    /// Opens the store in the file `path`, and creates the file and its directory if they are
    /// missing. Before the first step nothing is written, except that what dead hosts held is
    /// released.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, Timing::default())
    }

    /// Opens the store with other times. All processes that open a file should agree on them.
    pub fn open_with(path: &Path, timing: Timing) -> Result<Self, StoreError> {
        Self::at(DatabasePlace::file(path, timing)?)
    }

    /// Creates a store that lives as long as it is open, for tests.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::at(DatabasePlace::memory()?)
    }

    /// Opens another host on the same data, as another process would.
    pub fn another_host(&self) -> Result<Self, StoreError> {
        Self::at(self.place.clone())
    }

    fn at(place: DatabasePlace) -> Result<Self, StoreError> {
        let reader = place.connect().map_err(|error| place.failed(error))?;
        schema::bring_up_to_date(&place, &reader)?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(SharedState::with_feed(place.hosts().feed()));
        let writer = writer::start(place.clone(), Arc::clone(&shared), jobs.downgrade(), queue)
            .map_err(|error| place.failed(error))?;
        let dead = host_rows::dead_hosts(&place, &reader).map_err(|error| place.failed(error))?;
        let clearing = dead.into_iter().filter_map(|host| {
            let (answer, answered) = oneshot::channel();
            jobs.try_send(SqliteJob {
                work: WriteRequest::Free(host),
                answer,
            })
            .ok()
            .map(|()| answered)
        });
        let clearing = Mutex::new(clearing.collect());
        shared.give_reader(reader);
        Ok(Self {
            place,
            shared,
            jobs: Some(jobs),
            writer: Some(writer),
            clearing,
            feed_listener: Mutex::new(None),
        })
    }

    /// Returns the longest time that a batch has waited for its turn among the processes.
    pub fn longest_wait(&self) -> Duration {
        self.shared.longest_wait()
    }

    /// Finishes the current batch, and starts no other until the guard is dropped. For a process
    /// that is about to be stopped: stopped while it writes, it would block all others.
    pub fn still(&self) -> WritePause<'_> {
        self.shared.gate.still()
    }

    /// Queues `work` for the writer. It is queued before this returns, so that an agent's steps
    /// keep the order of the calls; only when the queue is full is the order that of waiting.
    fn write(&self, work: WriteRequest) -> BoxFuture<'_, Result<WriteAnswer, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let queued = self.queue(SqliteJob { work, answer });
        Box::pin(async move {
            queued.await?;
            answered
                .await
                .unwrap_or_else(|_| Err(self.writer_has_ended()))
        })
    }

    /// Queues a job before this returns, or in the returned future if the queue is full.
    fn queue(&self, job: SqliteJob) -> impl Future<Output = Result<(), StoreError>> + Send + '_ {
        let queued = match &self.jobs {
            Some(jobs) => jobs.try_send(job),
            None => Ok(()),
        };
        async move {
            if let (Err(mpsc::error::TrySendError::Full(job)), Some(jobs)) = (queued, &self.jobs) {
                jobs.send(job).await.map_err(|_| self.writer_has_ended())?;
            }
            Ok(())
        }
    }

    /// Runs a query on a connection of its own, on a thread where blocking is allowed.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&read::SqliteReader<'_>) -> Result<T, SqliteFailure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let clearing =
            mem::take(&mut *self.clearing.lock().unwrap_or_else(PoisonError::into_inner));
        for cleared in clearing {
            // If it failed, the query shows the state as it is.
            let _ = cleared.await;
        }
        let (place, shared) = (self.place.clone(), Arc::clone(&self.shared));
        let looked = tokio::task::spawn_blocking(move || {
            let connection = match shared.take_reader() {
                Some(connection) => connection,
                None => place.connect().map_err(|error| place.failed(error))?,
            };
            let found =
                read::SqliteReader::snapshot(&place, &connection).and_then(|reader| look(&reader));
            shared.give_reader(connection);
            found.map_err(|failure| failure.at(&place))
        });
        looked
            .await
            .unwrap_or_else(|error| Err(self.place.failed(std::io::Error::other(error))))
    }

    /// Ensures that feeds are listened to that other processes write, and that the listener queries
    /// once more. Returns false if there are no other processes.
    fn listen_to_feeds(&self) -> Result<bool, StoreError> {
        let mut listener = self
            .feed_listener
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            *listener = FeedListener::start(&self.place, &self.shared.feed)
                .map_err(|error| self.place.failed(error))?;
        }
        if let Some(listener) = &*listener {
            listener.notice();
        }
        Ok(listener.is_some())
    }

    fn writer_has_ended(&self) -> StoreError {
        self.place
            .failed(std::io::Error::other("the writer has ended"))
    }
}

impl Store for Sqlite {
    fn commit(&self, step: Step) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let done = self.write(WriteRequest::Commit(Box::new(step)));
        Box::pin(async { Ok(done.await?.committed) })
    }

    fn operate(&self, order: Order) -> BoxFuture<'_, Result<Vec<OpResult>, StoreError>> {
        let done = self.write(WriteRequest::Operate(Box::new(order)));
        Box::pin(async { Ok(done.await?.committed.results) })
    }

    fn take(&self, agent: AgentId) -> BoxFuture<'_, Result<Taken, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let work = WriteRequest::Take(agent);
        let queued = self.queue(SqliteJob { work, answer });
        let give_back = move |epoch| drop(self.release(agent, epoch));
        let mut guard = TakeGuard::new(answered, give_back);
        Box::pin(async move {
            queued.await?;
            let answer = guard.answer().await;
            let epoch = answer
                .unwrap_or_else(|| Err(self.writer_has_ended()))?
                .epoch;
            // Read after the commit: nobody else writes to the agent from now on, and reading a
            // long history inside the transaction would block every other agent.
            let taken = self.look(move |reader| reader.taken(agent, epoch)).await?;
            guard.keep();
            Ok(taken)
        })
    }

    fn release(&self, agent: AgentId, epoch: Epoch) -> BoxFuture<'_, Result<(), StoreError>> {
        let done = self.write(WriteRequest::Release(agent, epoch));
        Box::pin(async { done.await.map(drop) })
    }

    fn woken(&self) -> BoxFuture<'_, Result<Vec<Wake>, StoreError>> {
        Box::pin(async { Ok(self.shared.waker.woken().await) })
    }

    fn feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<FeedPage, StoreError>> {
        Box::pin(self.look(move |reader| reader.feed(realm, after, limit)))
    }

    fn follow_feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<FeedPage, StoreError>> {
        Box::pin(async move {
            // Before the query, so that nothing is missed between the two.
            let mut subscription = self.shared.feed.subscribe(realm, after);
            // The listener's first query is this reader's.
            if !self.listen_to_feeds()? {
                let page = self.feed(realm, after, limit).await?;
                if page.head > after {
                    return Ok(page);
                }
            }
            match subscription.beyond(after).await.page(after, limit) {
                Some(page) => Ok(page),
                None => self.feed(realm, after, limit).await,
            }
        })
    }

    fn read(&self, agent: AgentId) -> BoxFuture<'_, Result<Transcript, StoreError>> {
        Box::pin(self.look(move |reader| reader.transcript(agent, Extent::All)))
    }

    fn entries(
        &self,
        agent: AgentId,
        page: Page<u64>,
    ) -> BoxFuture<'_, Result<EntryPage, StoreError>> {
        Box::pin(self.look(move |reader| read::entries(reader, agent, &page)))
    }

    fn tiers(&self, agent: AgentId) -> BoxFuture<'_, Result<Vec<CallTier>, StoreError>> {
        Box::pin(self.look(move |reader| reader.tiers(agent)))
    }

    fn sessions(
        &self,
        filter: SessionFilter,
        page: Page<SessionKey>,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>> {
        Box::pin(self.look(move |reader| reader.sessions(&filter, &page)))
    }

    fn agents(
        &self,
        filter: AgentFilter,
        page: Page<AgentKey>,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>> {
        Box::pin(self.look(move |reader| reader.agents(&filter, &page)))
    }

    fn rows(
        &self,
        realm: RealmId,
        filter: RowFilter,
    ) -> BoxFuture<'_, Result<AgentRows, StoreError>> {
        Box::pin(self.look(move |reader| read::rows(reader, realm, &filter)))
    }

    fn spending(
        &self,
        agents: Vec<AgentId>,
    ) -> BoxFuture<'_, Result<Vec<SubtreeSpending>, StoreError>> {
        Box::pin(self.look(move |reader| {
            let each = agents.iter().map(|agent| reader.spending(*agent));
            each.collect()
        }))
    }

    fn mail(
        &self,
        realm: RealmId,
        agent: AgentId,
        filter: MailFilter,
        page: Page<u64>,
    ) -> BoxFuture<'_, Result<Vec<Mail>, StoreError>> {
        Box::pin(self.look(move |reader| reader.mail(realm, agent, filter, &page)))
    }

    fn teams(
        &self,
        realm: Option<RealmId>,
        page: Page<TeamKey>,
    ) -> BoxFuture<'_, Result<Vec<Team>, StoreError>> {
        Box::pin(self.look(move |reader| reader.teams(realm, &page)))
    }

    fn membership(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> BoxFuture<'_, Result<Vec<Membership>, StoreError>> {
        Box::pin(self.look(move |reader| reader.membership(realm, agent)))
    }

    fn notes(
        &self,
        list: ListId,
        page: Page<Name>,
    ) -> BoxFuture<'_, Result<Vec<Note>, StoreError>> {
        Box::pin(self.look(move |reader| reader.notes(&list, &page)))
    }

    fn task(&self, list: ListId, id: TaskId) -> BoxFuture<'_, Result<Option<Task>, StoreError>> {
        Box::pin(self.look(move |reader| reader.task(&list, id)))
    }

    fn tasks(
        &self,
        list: ListId,
        filter: TaskFilter,
        page: Page<TaskId>,
    ) -> BoxFuture<'_, Result<Vec<Task>, StoreError>> {
        Box::pin(self.look(move |reader| reader.tasks(&list, &filter, &page)))
    }

    fn requests(
        &self,
        realm: RealmId,
        agent: Option<AgentId>,
        page: Page<RequestKey>,
    ) -> BoxFuture<'_, Result<Vec<OpenRequest>, StoreError>> {
        Box::pin(self.look(move |reader| reader.requests(realm, agent, &page)))
    }

    fn questions(
        &self,
        filter: QuestionFilter,
        page: Page<QuestionKey>,
    ) -> BoxFuture<'_, Result<Vec<QuestionRecord>, StoreError>> {
        Box::pin(self.look(move |reader| read::list_questions(reader, &filter, &page)))
    }

    fn export(
        &self,
        realm: RealmId,
        team: Name,
    ) -> BoxFuture<'_, Result<Option<Archive>, StoreError>> {
        Box::pin(self.look(move |reader| reader.export(realm, &team)))
    }

    fn import(&self, archive: Archive) -> BoxFuture<'_, Result<(), StoreError>> {
        let done = self.write(WriteRequest::Import(Box::new(archive)));
        Box::pin(async { done.await.map(drop) })
    }
}

impl Drop for Sqlite {
    /// Ends the writer when it has finished its queue. What cannot be written because another
    /// process is stopped is given up.
    fn drop(&mut self) {
        self.shared.gate.close(self.place.timing.patience);
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has already failed whoever waited for it.
            let _ = writer.join();
        }
    }
}
