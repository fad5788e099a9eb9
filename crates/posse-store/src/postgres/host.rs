//! This host: what it writes, its standing with the other hosts, and what it tells them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::Object;
use posse_port::model::Encoded;
use posse_port::store::{Epoch, Step, StepId, StoreError, Wake};
use posse_protocol::{AgentId, RealmId};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::connection::ServerConnection;
use super::error::{PgCause, PgFailure, Remedy};
use super::job::{self, FeedHeads, JobKind, PgJob, WakesByHost, WriteResult};
use super::schema;
use super::{encode, nul};
use crate::columns::{self, Hash};
use crate::feed_watch::FeedWatch;
use crate::host_status::HostStatus;
use crate::wake::Waker;
use crate::write_outcome::WriteAnswer;

/// First pause before a server that was away is tried again; doubled each time, up to
/// [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Longest pause between two tries.
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// Number of contents that are remembered to be on the server.
const KNOWN: usize = 4096;
/// From this number on plain steps of a batch are written together.
const TOGETHER: usize = 2;
/// Maximum size of a notification in bytes. PostgreSQL refuses 8,000 and more.
const NOTICE: usize = 7900;

/// The state of this host that the store's thread and its callers share.
pub(super) struct PgHost {
    pub(super) link: ServerConnection,
    pub(super) id: Uuid,
    /// This machine's name, shown to people on other machines.
    pub(super) node: String,
    /// A [`HostStatus`] as its number.
    standing: AtomicU8,
    pub(super) waker: Waker,
    /// Wakes for other hosts that are not sent yet.
    untold: Mutex<WakesByHost>,
    /// Readers of this process that wait for feeds.
    pub(super) feed: Arc<FeedWatch>,
    /// Notified when a reader begins to wait.
    pub(super) feed_wanted: Notify,
    /// Feeds whose readers elsewhere are not told yet.
    unpublished: Mutex<FeedHeads>,
    /// Notified when there is something to tell, or when this host has got its row.
    pub(super) stir: Notify,
    /// Contents known to be on the server, which need not be sent again.
    known: Mutex<HashSet<(RealmId, Hash)>>,
    /// The last step of each agent that this host writes to, in its epoch. A step names the one
    /// it continues from: a try whose answer was lost may still arrive after later steps.
    last: Mutex<HashMap<AgentId, (Epoch, StepId)>>,
    /// True once the store is being dropped: failures are no longer waited out.
    closing: AtomicBool,
    /// Weak, because the writer ends when the last strong sender is gone.
    jobs: mpsc::WeakSender<PgJob>,
}

impl PgHost {
    pub(super) fn new(link: ServerConnection, jobs: mpsc::WeakSender<PgJob>) -> Self {
        Self {
            link,
            id: Uuid::now_v7(),
            node: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            standing: AtomicU8::new(HostStatus::Stranger as u8),
            waker: Waker::default(),
            untold: Mutex::default(),
            feed: Arc::default(),
            feed_wanted: Notify::new(),
            unpublished: Mutex::default(),
            stir: Notify::new(),
            known: Mutex::default(),
            last: Mutex::default(),
            closing: AtomicBool::new(false),
            jobs,
        }
    }

    pub(super) fn standing(&self) -> HostStatus {
        match self.standing.load(Ordering::SeqCst) {
            0 => HostStatus::Stranger,
            1 => HostStatus::Settled,
            _ => HostStatus::Lost,
        }
    }

    /// Notes that this host was taken for dead. The runtime is told once.
    pub(super) fn lose(&self) {
        if self.standing.swap(HostStatus::Lost as u8, Ordering::SeqCst) != HostStatus::Lost as u8 {
            self.waker.wake([Wake::Fenced]);
        }
    }

    /// Stops waiting for a server that is away.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Returns true if this host remembers that the server has this content.
    pub(super) fn knows(&self, realm: RealmId, encoded: &Encoded) -> bool {
        let name = columns::content_name(&encoded.bytes, encoded.mark_at);
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&(realm, name))
    }

    /// Remembers what a step brought to the server, and that it was its agent's last.
    fn remember(&self, step: &Step) {
        self.goes_on(step.agent, (step.epoch, step.id));
        let preamble = step.birth.iter().map(|birth| &birth.preamble);
        let entries = step.entries.iter();
        let shared = entries.flat_map(|entry| entry.head.iter().chain(&entry.loaded));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for encoded in preamble.chain(shared) {
            // Forgetting is harmless: the content is sent once more.
            if known.len() >= KNOWN {
                known.clear();
            }
            known.insert((
                step.realm,
                columns::content_name(&encoded.bytes, encoded.mark_at),
            ));
        }
    }

    /// Sets the step that the agent's next step continues from.
    fn goes_on(&self, agent: AgentId, from: (Epoch, StepId)) {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(agent, from);
    }

    /// Returns the step that `step` continues from, if this host remembers it.
    fn before(&self, step: &Step) -> Option<Uuid> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.get(&step.agent)
            // Under another epoch somebody else may have written in between.
            .filter(|(epoch, _)| *epoch == step.epoch)
            .map(|(_, step)| step.0)
    }

    /// Forgets the last steps of agents that are released, or whose state is unknown after a
    /// failure.
    fn forget(&self, jobs: &[PgJob]) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        for agent in jobs.iter().filter_map(|job| job.agent) {
            last.remove(&agent);
        }
    }

    /// Writes jobs in one transaction and answers each one. A refusal affects only its own job.
    pub(super) async fn write(&self, jobs: Vec<PgJob>) {
        // The server refuses a batch as a whole without saying which job is wrong, so that halves
        // are tried. A stack with the first half on top keeps the order of an agent's steps.
        let mut parts = vec![jobs];
        while let Some(mut jobs) = parts.pop() {
            match self.persist(&jobs).await {
                Ok(written) => self.answer(jobs, written),
                Err(PgFailure::Refused(_)) if jobs.len() > 1 => {
                    parts.push(jobs.split_off(jobs.len() / 2));
                    parts.push(jobs);
                }
                Err(PgFailure::Refused(error)) => {
                    if let Some(job) = jobs.pop() {
                        let _ = job.answer.send(Err(error));
                    }
                }
                Err(PgFailure::Broken(cause)) => {
                    // Whether they were committed is unknown, so the next step cannot name its
                    // predecessor.
                    self.forget(&jobs);
                    for job in jobs {
                        let _ = job.answer.send(Err(cause.clone().at(self.link.place())));
                    }
                }
            }
        }
    }

    /// Answers jobs that are durable, and wakes the hosts concerned.
    fn answer(&self, jobs: Vec<PgJob>, written: WriteResult) {
        // Durable by now: what is told earlier could not be seen by those who look.
        let (news, heads) = job::sorted(written.news);
        self.tell(news);
        self.publish(heads);
        for (job, done) in jobs.into_iter().zip(written.done) {
            match (&job.step, job.agent, job::taken(&done)) {
                (Some(step), ..) => self.remember(step),
                (None, Some(agent), Some(last)) => self.goes_on(agent, last),
                _ => self.forget(std::slice::from_ref(&job)),
            }
            let sent = job.answer.send(job::answer(done));
            // A caller that stopped waiting needs no answer. But if it took an agent, nobody
            // knows that this host holds it, so it is released again.
            if let (Some(agent), JobKind::Holds, None, Err(Ok(WriteAnswer { epoch, .. }))) =
                (job.agent, job.kind, job.step, sent)
                && let Some(jobs) = self.jobs.upgrade()
            {
                let (encoded, answer) = (
                    encode::release(agent, epoch),
                    tokio::sync::oneshot::channel().0,
                );
                let release = PgJob {
                    agent: Some(agent),
                    realm: None,
                    encoded,
                    step: None,
                    kind: JobKind::Releases,
                    answer,
                };
                let _ = jobs.try_send(release);
            }
        }
    }

    /// Has the server do jobs, and tries again as long as that may help. The server recognizes a
    /// job it has done by its id, so that nothing is guessed after a lost answer.
    async fn persist(&self, jobs: &[PgJob]) -> Result<WriteResult, PgFailure> {
        let holds = jobs.iter().any(|job| job.kind == JobKind::Holds);
        let (mut whole, mut overtaken) = (false, false);
        let mut asking = self.asking(jobs, None)?;
        let mut patience = Patience::new(self);
        loop {
            let standing = self.standing();
            let me = (holds || standing != HostStatus::Stranger).then(|| {
                let (settled, pid) = (standing != HostStatus::Stranger, std::process::id());
                json!({
                    "id": self.id, "pid": pid, "node": self.node, "settled": settled,
                    "version": schema::KNOWN,
                })
                .to_string()
            });
            match self.ask(me.as_deref(), &asking).await {
                Ok(written) => {
                    if holds && standing == HostStatus::Stranger {
                        self.settle();
                    }
                    return Ok(written);
                }
                // The content was removed since this host remembered it: everything is sent once.
                Err(SendError::Unknown) if !whole => {
                    whole = true;
                    asking = self.asking(jobs, Some(&|step| encode::step(step, |_| false)))?;
                }
                Err(SendError::Unknown) => return Err(PgFailure::bad_step("a content is missing")),
                // Another process wrote with this epoch, or an earlier try did arrive: without a
                // predecessor the server decides by the step's id alone.
                Err(SendError::Overtaken) if !overtaken => {
                    overtaken = true;
                    self.forget(jobs);
                    asking = self.asking(jobs, None)?;
                }
                Err(SendError::Overtaken) => {
                    return Err(PgFailure::bad_step(
                        "it continues from a step that does not exist",
                    ));
                }
                Err(SendError::Failed(failure)) => patience.with(failure).await?,
            }
        }
    }

    /// Assembles a request from jobs. With `anew`, steps are encoded again.
    fn asking(&self, jobs: &[PgJob], anew: Option<Anew<'_>>) -> Result<EncodedJobs, PgFailure> {
        let (mut told, mut blobs) = (Vec::with_capacity(jobs.len()), Vec::new());
        let together = jobs.iter().filter(|job| job.encoded.plain).count() >= TOGETHER;
        for job in jobs {
            let again = match (anew, &job.step) {
                (Some(anew), Some(step)) => Some(anew(step).map_err(PgFailure::Refused)?),
                _ => None,
            };
            let encoded = again.as_ref().unwrap_or(&job.encoded);
            let mut json = encoded.json.clone();
            // Each job counts its blobs from 1; in a batch it also needs its share of the common
            // array.
            if jobs.len() > 1 && !encoded.blobs.is_empty() {
                (json["base"], json["count"]) = (json!(blobs.len()), json!(encoded.blobs.len()));
            }
            if together && encoded.plain {
                json["plain"] = json!(true);
            }
            if let Some(after) = job.step.as_ref().and_then(|step| self.before(step)) {
                json["after"] = json!(after);
            }
            told.push(json);
            blobs.extend(encoded.blobs.iter().cloned());
        }
        let jobs =
            serde_json::to_string(&told).map_err(|error| PgFailure::bad_step(error.to_string()))?;
        Ok(EncodedJobs {
            jobs: nul::hide(&jobs).into_owned(),
            blobs,
        })
    }

    /// Sends one request and waits for the answer.
    async fn ask(&self, me: Option<&str>, asking: &EncodedJobs) -> Result<WriteResult, SendError> {
        let client = self.link.client().await.map_err(SendError::Failed)?;
        let sql = "SELECT write($1::text::jsonb, $2::text::jsonb, $3::bytea[])::text";
        let statement = client
            .prepare_cached(sql)
            .await
            .map_err(|error| SendError::Failed(error.into()))?;
        // Beside the JSON, which has no type for bytes.
        let blobs: Vec<&[u8]> = asking.blobs.iter().map(|blob| &blob[..]).collect();
        let asked: [&(dyn ToSql + Sync); 3] = [&me, &asking.jobs, &blobs];
        let Ok(row) = timeout(
            self.link.timing.patience,
            client.query_one(&statement, &asked),
        )
        .await
        else {
            // The connection is still busy with the query: it is closed, not returned to the
            // pool.
            drop(Object::take(client));
            let late = PgCause::new(
                "the server has not answered for too long",
                Remedy::Reconnect,
            );
            return Err(SendError::Failed(PgFailure::Broken(late)));
        };
        let row = row.map_err(|error| self.told(error))?;
        let text: String = row
            .try_get(0)
            .map_err(|error| SendError::Failed(error.into()))?;
        serde_json::from_str(&nul::show(&text))
            .map_err(|error| SendError::Failed(PgFailure::senseless(error)))
    }

    /// Interprets an error that the functions raised.
    fn told(&self, error: tokio_postgres::Error) -> SendError {
        let said = error.as_db_error();
        match said.map(|said| said.code().code()) {
            Some("PO001") => {
                let detail = said.and_then(|said| said.detail()).unwrap_or_default();
                if detail.contains("\"lost\"") {
                    self.lose();
                }
                match job::refusal(detail, &self.node) {
                    Some(refusal) => SendError::Failed(PgFailure::Refused(refusal)),
                    None => SendError::Failed(PgFailure::senseless(detail.to_owned())),
                }
            }
            Some("PO002") => SendError::Unknown,
            Some("PO003") => SendError::Overtaken,
            _ => SendError::Failed(error.into()),
        }
    }

    /// Notes that this host now has its row.
    fn settle(&self) {
        let (from, to) = (HostStatus::Stranger as u8, HostStatus::Settled as u8);
        let _ = self
            .standing
            // Not a plain store: the listener may have found the host lost in the meantime.
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
        self.stir.notify_one();
    }

    /// Wakes this host if it is concerned, and queues what other hosts should know.
    pub(super) fn tell(&self, mut news: WakesByHost) {
        if let Some(mine) = news.remove(&self.id) {
            if mine.contains(&Wake::Fenced) {
                self.lose();
            }
            self.waker
                .wake(mine.into_iter().filter(|wake| *wake != Wake::Fenced));
        }
        if news.is_empty() {
            return;
        }
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        for (host, wakes) in news {
            untold.entry(host).or_default().extend(wakes);
        }
        self.stir.notify_one();
    }

    /// Tells readers of feeds their last numbers: those of this process now, others by
    /// notifications.
    fn publish(&self, heads: FeedHeads) {
        if heads.is_empty() {
            return;
        }
        let mut unpublished = self
            .unpublished
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (realm, head) in heads {
            self.feed.publish(realm, head);
            unpublished.insert(realm, head);
        }
        self.stir.notify_one();
    }

    /// Takes what other hosts should know, as channels and texts. Each host gets one
    /// notification.
    pub(super) fn notices(&self) -> Vec<(String, String)> {
        let untold =
            std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner));
        let heads = std::mem::take(
            &mut *self
                .unpublished
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let feeds = heads
            .into_iter()
            .map(|(realm, head)| (feed_channel(realm), head.to_string()));
        untold
            .into_iter()
            .map(|(host, wakes)| (channel(host), notice(&wakes)))
            .chain(feeds)
            .collect()
    }

    /// Releases everything this host still holds.
    pub(super) async fn leave(&self) -> Result<(), PgFailure> {
        if self.standing() != HostStatus::Settled {
            return Ok(());
        }
        let mut patience = Patience::new(self);
        loop {
            match self.leave_some().await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(failure) => patience.with(failure).await?,
            }
        }
    }

    /// Releases a part of it and returns true if there is more. Small transactions block nobody
    /// long.
    async fn leave_some(&self) -> Result<bool, PgFailure> {
        let client = self.link.client().await?;
        let row = client
            .query_one("SELECT leave($1)::text", &[&self.id])
            .await?;
        let text: String = row.try_get(0)?;
        let left: WriteResult = serde_json::from_str(&text).map_err(PgFailure::senseless)?;
        let (mut news, heads) = job::sorted(left.news);
        // The host's own departure must not look like being fenced.
        news.remove(&self.id);
        self.tell(news);
        self.publish(heads);
        Ok(left.more)
    }
}

/// Returns the notification channel of a host.
pub(super) fn channel(host: Uuid) -> String {
    format!("posse_{}", host.simple())
}

/// Returns the notification channel of a realm's feed.
pub(super) fn feed_channel(realm: RealmId) -> String {
    format!("posse_feed_{}", realm.uuid().simple())
}

/// Returns the text of a notification. Empty if it would be too long; the receiver then queries
/// for itself.
fn notice(wakes: &BTreeSet<Wake>) -> String {
    let said: Vec<Value> = wakes
        .iter()
        .map(|wake| match wake {
            Wake::Mail(agent) => json!({"mail": agent}),
            Wake::Tasks(list) => json!({"list": list}),
            Wake::Died(host) => json!({"died": host}),
            Wake::Fenced => json!("fenced"),
        })
        .collect();
    let text = Value::Array(said).to_string();
    if text.len() > NOTICE {
        String::new()
    } else {
        text
    }
}

/// Parses a notification. `None` if this host has to query for itself.
pub(super) fn heard(notice: &str) -> Option<Vec<Wake>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Notice {
        Mail(posse_protocol::AgentId),
        List(posse_protocol::ListId),
        Died(posse_protocol::HostId),
        Fenced,
    }
    let said: Vec<Notice> = serde_json::from_str(notice).ok()?;
    let wakes = said.into_iter().map(|said| match said {
        Notice::Mail(agent) => Wake::Mail(agent),
        Notice::List(list) => Wake::Tasks(list),
        Notice::Died(host) => Wake::Died(host),
        Notice::Fenced => Wake::Fenced,
    });
    Some(wakes.collect())
}

/// Why a request failed.
enum SendError {
    /// A content was left out that the server does not have.
    Unknown,
    /// The agent's last step is not the one this host remembers: somebody else wrote with its
    /// epoch.
    Overtaken,
    Failed(PgFailure),
}

/// A batch of jobs as it is sent.
struct EncodedJobs {
    jobs: String,
    blobs: Vec<Bytes>,
}

/// Encodes a step again, with everything it left out the first time.
type Anew<'a> = &'a (dyn Fn(&Step) -> Result<encode::EncodedStep, StoreError> + Sync);

/// A limit on how long a server that is away is waited for.
pub(super) struct Patience<'a> {
    host: &'a PgHost,
    end: Instant,
    pause: Duration,
}

impl<'a> Patience<'a> {
    pub(super) fn new(host: &'a PgHost) -> Self {
        Self {
            host,
            end: Instant::now() + host.link.timing.patience,
            pause: FIRST_PAUSE,
        }
    }

    /// Waits until a retry makes sense. Returns the failure if no retry helps or time is up.
    pub(super) async fn with(&mut self, failure: PgFailure) -> Result<(), PgFailure> {
        let over = Instant::now() >= self.end || self.host.closing.load(Ordering::SeqCst);
        if failure.remedy() == Remedy::None || over {
            return Err(failure);
        }
        pause(self.pause).await;
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        Ok(())
    }
}

/// Sleeps in real time: a test's paused clock cannot make a server answer sooner.
pub(super) async fn pause(time: Duration) {
    let _: Result<(), _> = timeout(time, std::future::pending()).await;
}
