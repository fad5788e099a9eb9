//! The store port on PostgreSQL: a server that any number of machines share.
//!
//! Every decision about a write is made by functions on the server (`postgres/schema`), one call
//! per batch of steps: one round trip, one transaction. This file owns the value that callers
//! hold. Its connections live on a thread of their own, so that it can be used from any runtime
//! and can finish its work when it is dropped.

mod column;
mod compress;
mod connection;
mod diagnosis;
mod encode;
mod error;
mod feed_listener;
mod host;
mod job;
mod listener;
pub(crate) mod maintain;
mod nul;
mod read;
mod schema;
mod writer;

use std::io;
use std::sync::Arc;
use std::sync::mpsc as waiting;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::store::{
    AgentFilter, AgentKey, AgentRecord, AgentRows, Archive, CallTier, Committed, EntryPage, Epoch,
    FeedPage, MailFilter, Membership, OpResult, OpenRequest, Order, Page, QuestionFilter,
    QuestionKey, QuestionRecord, RequestKey, RowFilter, SessionFilter, SessionKey, Step, Store,
    StoreError, SubtreeSpending, Taken, TaskFilter, TeamKey, Transcript, Wake,
};
use posse_protocol::{AgentId, ListId, Mail, Name, Note, RealmId, Task, TaskId, Team};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::Timing;
use crate::take_guard::TakeGuard;
use crate::write_outcome::{WriteAnswer, WriteOutcome};
use connection::ServerConnection;
use encode::EncodedStep;
use error::PgFailure;
use host::{Patience, PgHost};
use job::{JobKind, PgJob};
use read::{PgReader, feed};

pub use diagnosis::{ServerTrouble, server_trouble};
pub use schema::Migrated;

/// A store on a PostgreSQL server.
///
/// Each value is a host of its own: an agent that one of them holds is refused to the others, in
/// this process and in any other.
pub struct Postgres {
    url: String,
    /// State shared with the store's thread.
    host: Arc<PgHost>,
    /// Runtime of the store's thread, on which queries run.
    handle: Handle,
    /// `None` only while dropping: the thread ends when the last sender is gone.
    jobs: Option<mpsc::Sender<PgJob>>,
    thread: Option<JoinHandle<()>>,
}

impl Postgres {
    /// Opens the store at a URL: `postgres://USER@HOST[:PORT][,HOST…]/DATABASE`. An empty database is set up.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        Self::at(url, ServerConnection::new(url, None)?)
    }

    /// Opens the store with other times. All users of a database should agree on the lease.
    pub fn open_with(url: &str, timing: Timing) -> Result<Self, StoreError> {
        Self::at(url, ServerConnection::new(url, Some(timing))?)
    }

    /// Opens the store, and removes rows of feeds that are older than `feed_age`.
    pub fn open_keeping(url: &str, feed_age: Duration) -> Result<Self, StoreError> {
        let mut link = ServerConnection::new(url, None)?;
        link.timing.feed_age = feed_age;
        Self::at(url, link)
    }

    /// Opens another host on the same data, as another process would.
    pub fn another_host(&self) -> Result<Self, StoreError> {
        Self::open_with(&self.url, self.host.link.timing)
    }

    fn at(url: &str, link: ServerConnection) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel(writer::QUEUE);
        let host = Arc::new(PgHost::new(link, jobs.downgrade()));
        let (ready, opened) = waiting::sync_channel(1);
        let serving = Arc::clone(&host);
        let thread = thread::Builder::new()
            .name("posse-store".into())
            .spawn(
                move || match Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime.block_on(serve(serving, queue, ready)),
                    Err(error) => drop(ready.send(Err(PgFailure::from(error)))),
                },
            );
        let failed = |error: io::Error| PgFailure::from(error).at(host.link.place());
        let thread = thread.map_err(failed)?;
        let gone = |_| failed(io::Error::other("the store's thread has ended"));
        let handle = opened
            .recv()
            .map_err(gone)?
            .map_err(|failure| failure.at(host.link.place()))?;
        let (url, jobs, thread) = (url.to_owned(), Some(jobs), Some(thread));
        Ok(Self {
            url,
            host,
            handle,
            jobs,
            thread,
        })
    }

    /// Queues jobs to be written and returns a future of their outcome. They are queued before
    /// this returns, so that an agent's steps keep the order of the calls; only when the queue is
    /// full is the order that of waiting.
    fn write(
        &self,
        work: Result<PgWork, StoreError>,
    ) -> BoxFuture<'_, Result<WriteAnswer, StoreError>> {
        let PgWork {
            agent,
            realm,
            encoded,
            step,
            kind,
        } = match work {
            Ok(work) => work,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let (answer, answered) = oneshot::channel::<WriteOutcome>();
        let queued = self.queue(PgJob {
            agent,
            realm,
            encoded,
            step,
            kind,
            answer,
        });
        Box::pin(async move {
            queued.await?;
            answered.await.unwrap_or_else(|_| Err(self.has_ended()))
        })
    }

    /// Queues a job before this returns, or in the returned future if the queue is full.
    fn queue(&self, job: PgJob) -> impl Future<Output = Result<(), StoreError>> + Send + '_ {
        let queued = match &self.jobs {
            Some(jobs) => jobs.try_send(job),
            None => Ok(()),
        };
        async move {
            if let (Err(mpsc::error::TrySendError::Full(job)), Some(jobs)) = (queued, &self.jobs) {
                jobs.send(job).await.map_err(|_| self.has_ended())?;
            }
            Ok(())
        }
    }

    /// Runs a query on a pooled connection, and again if the connection was cut meanwhile.
    fn look<T: Send + 'static>(
        &self,
        look: impl for<'a> Fn(&'a PgReader<'a>) -> BoxFuture<'a, Result<T, PgFailure>>
        + Send
        + Sync
        + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let host = Arc::clone(&self.host);
        // On the store's own runtime: the pool's connections are driven there, and the caller may
        // have no tokio runtime at all.
        let looking = self.handle.spawn(async move {
            let mut patience = Patience::new(&host);
            loop {
                let looked = match host.link.client().await {
                    Ok(client) => look(&PgReader::new(&client, &host.node)).await,
                    Err(failure) => Err(failure),
                };
                match looked {
                    Ok(found) => return Ok(found),
                    Err(failure) => {
                        patience
                            .with(failure)
                            .await
                            .map_err(|failure| failure.at(host.link.place()))?;
                    }
                }
            }
        });
        Box::pin(async { looking.await.unwrap_or_else(|_| Err(self.has_ended())) })
    }

    fn has_ended(&self) -> StoreError {
        PgFailure::from(io::Error::other("the store's thread has ended")).at(self.host.link.place())
    }
}

/// Brings the tables of a server up to date. With `contract` it also removes what only older
/// versions of posse needed; these can no longer use the server afterwards.
pub fn migrate(url: &str, contract: bool) -> Result<Migrated, StoreError> {
    let link = ServerConnection::new(url, None)?;
    let failed = |failure: PgFailure| failure.at(link.place());
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(error.into()))?;
    runtime
        .block_on(schema::migrate(&link, contract))
        .map_err(failed)
}

/// A write request, before it has a channel for its answer.
struct PgWork {
    agent: Option<AgentId>,
    realm: Option<RealmId>,
    encoded: EncodedStep,
    step: Option<Arc<Step>>,
    kind: JobKind,
}

/// Runs the store's thread from opening to the end.
async fn serve(
    host: Arc<PgHost>,
    queue: mpsc::Receiver<PgJob>,
    ready: waiting::SyncSender<Result<Handle, PgFailure>>,
) {
    if let Err(failure) = schema::ready(&host.link).await {
        let _ = ready.send(Err(failure));
        return;
    }
    let _ = ready.send(Ok(Handle::current()));
    let mut listening = JoinSet::new();
    listening.spawn(listener::listen(Arc::clone(&host)));
    listening.spawn(feed_listener::listen(Arc::clone(&host)));
    writer::write(Arc::clone(&host), queue).await;
    listening.shutdown().await;
    // Errors are ignored: what cannot be released here is free when the lease has expired.
    if host.leave().await.is_ok()
        && let Ok(client) = host.link.client().await
    {
        let _ = listener::tell(&host, &client).await;
    }
}

impl Store for Postgres {
    fn commit(&self, step: Step) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let kind = if step.birth.is_some() {
            JobKind::Holds
        } else {
            JobKind::Neither
        };
        let work =
            encode::step(&step, |encoded| self.host.knows(step.realm, encoded)).map(|encoded| {
                let (agent, realm) = (Some(step.agent), Some(step.realm));
                PgWork {
                    agent,
                    realm,
                    encoded,
                    step: Some(Arc::new(step)),
                    kind,
                }
            });
        let done = self.write(work);
        Box::pin(async { Ok(done.await?.committed) })
    }

    fn operate(&self, order: Order) -> BoxFuture<'_, Result<Vec<OpResult>, StoreError>> {
        let realm = Some(order.realm);
        let work = encode::order(&order).map(|encoded| PgWork {
            agent: None,
            realm,
            encoded,
            step: None,
            kind: JobKind::Neither,
        });
        let done = self.write(work);
        Box::pin(async { Ok(done.await?.committed.results) })
    }

    fn take(&self, agent: AgentId) -> BoxFuture<'_, Result<Taken, StoreError>> {
        let (answer, answered) = oneshot::channel::<WriteOutcome>();
        let queued = self.queue(PgJob {
            agent: Some(agent),
            realm: None,
            encoded: encode::take(agent),
            step: None,
            kind: JobKind::Holds,
            answer,
        });
        let give_back = move |epoch| drop(self.release(agent, epoch));
        let mut guard = TakeGuard::new(answered, give_back);
        Box::pin(async move {
            queued.await?;
            let answer = guard.answer().await;
            let epoch = answer.unwrap_or_else(|| Err(self.has_ended()))?.epoch;
            let taken = self
                .look(move |reader| Box::pin(reader.taken(agent, epoch)))
                .await?;
            guard.keep();
            Ok(taken)
        })
    }

    fn release(&self, agent: AgentId, epoch: Epoch) -> BoxFuture<'_, Result<(), StoreError>> {
        let encoded = encode::release(agent, epoch);
        let done = self.write(Ok(PgWork {
            agent: Some(agent),
            realm: None,
            encoded,
            step: None,
            kind: JobKind::Releases,
        }));
        Box::pin(async { done.await.map(drop) })
    }

    fn woken(&self) -> BoxFuture<'_, Result<Vec<Wake>, StoreError>> {
        Box::pin(async { Ok(self.host.waker.woken().await) })
    }

    fn feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<FeedPage, StoreError>> {
        self.look(move |reader| Box::pin(feed::page(reader, realm, after, limit)))
    }

    fn follow_feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<FeedPage, StoreError>> {
        Box::pin(async move {
            // Before the query, so that nothing is missed between the two.
            let mut subscription = self.host.feed.subscribe(realm, after);
            self.host.feed_wanted.notify_one();
            let page = self.feed(realm, after, limit).await?;
            if page.head > after {
                return Ok(page);
            }
            subscription.beyond(after).await;
            self.feed(realm, after, limit).await
        })
    }

    fn read(&self, agent: AgentId) -> BoxFuture<'_, Result<Transcript, StoreError>> {
        self.look(move |reader| Box::pin(reader.transcript(agent)))
    }

    fn entries(
        &self,
        agent: AgentId,
        page: Page<u64>,
    ) -> BoxFuture<'_, Result<EntryPage, StoreError>> {
        self.look(move |reader| Box::pin(async move { read::entries(reader, agent, &page).await }))
    }

    fn tiers(&self, agent: AgentId) -> BoxFuture<'_, Result<Vec<CallTier>, StoreError>> {
        self.look(move |reader| Box::pin(reader.tiers(agent)))
    }

    fn sessions(
        &self,
        filter: SessionFilter,
        page: Page<SessionKey>,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>> {
        self.look(move |reader| {
            let filter = filter.clone();
            Box::pin(async move { reader.sessions(&filter, &page).await })
        })
    }

    fn agents(
        &self,
        filter: AgentFilter,
        page: Page<AgentKey>,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>> {
        self.look(move |reader| {
            let (filter, page) = (filter.clone(), page.clone());
            Box::pin(async move { reader.agents(&filter, &page).await })
        })
    }

    fn rows(
        &self,
        realm: RealmId,
        filter: RowFilter,
    ) -> BoxFuture<'_, Result<AgentRows, StoreError>> {
        self.look(move |reader| {
            let filter = filter.clone();
            Box::pin(async move { read::agent_rows(reader, realm, &filter).await })
        })
    }

    fn spending(
        &self,
        agents: Vec<AgentId>,
    ) -> BoxFuture<'_, Result<Vec<SubtreeSpending>, StoreError>> {
        self.look(move |reader| {
            let agents = agents.clone();
            Box::pin(async move { reader.spending(&agents).await })
        })
    }

    fn mail(
        &self,
        realm: RealmId,
        agent: AgentId,
        filter: MailFilter,
        page: Page<u64>,
    ) -> BoxFuture<'_, Result<Vec<Mail>, StoreError>> {
        self.look(move |reader| {
            Box::pin(async move { reader.mail(realm, agent, filter, &page).await })
        })
    }

    fn teams(
        &self,
        realm: Option<RealmId>,
        page: Page<TeamKey>,
    ) -> BoxFuture<'_, Result<Vec<Team>, StoreError>> {
        self.look(move |reader| {
            let page = page.clone();
            Box::pin(async move { reader.teams(realm, &page).await })
        })
    }

    fn membership(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> BoxFuture<'_, Result<Vec<Membership>, StoreError>> {
        self.look(move |reader| Box::pin(reader.membership(realm, agent)))
    }

    fn notes(
        &self,
        list: ListId,
        page: Page<Name>,
    ) -> BoxFuture<'_, Result<Vec<Note>, StoreError>> {
        self.look(move |reader| {
            let (list, page) = (list.clone(), page.clone());
            Box::pin(async move { reader.notes(&list, &page).await })
        })
    }

    fn task(&self, list: ListId, id: TaskId) -> BoxFuture<'_, Result<Option<Task>, StoreError>> {
        self.look(move |reader| {
            let list = list.clone();
            Box::pin(async move { read::task(reader, &list, id).await })
        })
    }

    fn tasks(
        &self,
        list: ListId,
        filter: TaskFilter,
        page: Page<TaskId>,
    ) -> BoxFuture<'_, Result<Vec<Task>, StoreError>> {
        self.look(move |reader| {
            let (list, filter) = (list.clone(), filter.clone());
            Box::pin(async move { read::tasks(reader, &list, &filter, &page).await })
        })
    }

    fn requests(
        &self,
        realm: RealmId,
        agent: Option<AgentId>,
        page: Page<RequestKey>,
    ) -> BoxFuture<'_, Result<Vec<OpenRequest>, StoreError>> {
        self.look(move |reader| Box::pin(async move { reader.requests(realm, agent, &page).await }))
    }

    fn questions(
        &self,
        filter: QuestionFilter,
        page: Page<QuestionKey>,
    ) -> BoxFuture<'_, Result<Vec<QuestionRecord>, StoreError>> {
        self.look(move |reader| {
            let filter = filter.clone();
            Box::pin(async move { read::list_questions(reader, &filter, &page).await })
        })
    }

    fn export(
        &self,
        realm: RealmId,
        team: Name,
    ) -> BoxFuture<'_, Result<Option<Archive>, StoreError>> {
        self.look(move |reader| {
            let team = team.clone();
            Box::pin(async move { reader.export(realm, &team).await })
        })
    }

    fn import(&self, archive: Archive) -> BoxFuture<'_, Result<(), StoreError>> {
        let realm = Some(archive.team.realm);
        let work = encode::import(&archive).map(|encoded| PgWork {
            agent: None,
            realm,
            encoded,
            step: None,
            kind: JobKind::Neither,
        });
        let done = self.write(work);
        Box::pin(async { done.await.map(drop) })
    }
}

impl Drop for Postgres {
    /// Returns when everything queued is written or has failed, and what the host holds is
    /// released.
    fn drop(&mut self) {
        // First, so that a server that is away is not waited for.
        self.host.close();
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has dropped its senders, so that every waiting caller got an
            // error.
            let _ = thread.join();
        }
    }
}
