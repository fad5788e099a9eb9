//! The one thread of a process that writes.
//!
//! It takes everything that is waiting, commits it in one transaction ([`Batch`]), and answers
//! when that is durable: one sync of the disk serves every agent that queued something meanwhile.
//! It never waits for a batch to fill.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use posse_port::store::Wake;
use posse_protocol::RealmId;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::batch::{Batch, Start};
use super::bell::Bell;
use super::changes::Changes;
use super::error::{SqliteCause, SqliteFailure};
use super::feed;
use super::free;
use super::host::SqliteHost;
use super::job::{SqliteJob, WriteRequest};
use super::notify::Notifier;
use super::place::DatabasePlace;
use super::shared::SharedState;
use super::turnstile::{Pass, Turnstile};
use crate::host_status::HostStatus;
use crate::write_outcome::{WriteAnswer, WriteOutcome};

/// Maximum number of jobs per transaction; the rest waits for the next one.
const BATCH: usize = 512;

/// Starts the writer. It ends when all senders are gone and all jobs are done.
pub(super) fn start(
    place: DatabasePlace,
    shared: Arc<SharedState>,
    jobs: mpsc::WeakSender<SqliteJob>,
    mut queue: mpsc::Receiver<SqliteJob>,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("posse-store".into())
        .spawn(move || {
            let mut writer = Writer::new(place, shared, jobs);
            let (mut jobs, mut outcomes) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
            while queue.blocking_recv_many(&mut jobs, BATCH) > 0 {
                let written = writer.write(&jobs, &mut outcomes);
                writer.answer(&mut jobs, &mut outcomes, written);
            }
            // What it cannot release itself is released by others, who find its lock free.
            let _ = writer.leave();
        })
}

/// The state of the writing thread.
struct Writer {
    place: DatabasePlace,
    shared: Arc<SharedState>,
    /// Passed to the bell, which has work for the writer.
    jobs: mpsc::WeakSender<SqliteJob>,
    /// Opened with the first job.
    database: Option<WriterConnection>,
    /// Created when it is about to hold an agent: a process that only reads leaves no traces.
    host: Option<SqliteHost>,
    status: HostStatus,
    /// What the bell starts from, until it has been started.
    start: Option<Start>,
    bell: Option<Bell>,
    notifier: Notifier,
}

/// The connection that writes, and the turnstile it passes.
struct WriterConnection {
    connection: Connection,
    turnstile: Option<Turnstile>,
}

impl Writer {
    fn new(
        place: DatabasePlace,
        shared: Arc<SharedState>,
        jobs: mpsc::WeakSender<SqliteJob>,
    ) -> Self {
        let (notifier, status) = (Notifier::new(place.hosts()), HostStatus::Stranger);
        Self {
            place,
            shared,
            jobs,
            database: None,
            host: None,
            status,
            start: None,
            bell: None,
            notifier,
        }
    }

    /// Commits a batch. `outcomes` gets one outcome per job, valid only if this returns `Ok`.
    fn write(
        &mut self,
        jobs: &[SqliteJob],
        outcomes: &mut Vec<WriteOutcome>,
    ) -> Result<(), SqliteCause> {
        let shared = Arc::clone(&self.shared);
        let _writing = shared.gate.write();
        let me = match jobs.iter().any(|job| job.work.needs_host()) {
            true => Some(self.host()?),
            false => None,
        };
        let database = match &mut self.database {
            Some(database) => database,
            database @ None => {
                let (connection, turnstile) = (self.place.connect()?, self.place.turnstile()?);
                database.insert(WriterConnection {
                    connection,
                    turnstile,
                })
            }
        };
        let pass = database.enter(&self.place, &shared)?;
        if let (Some(host), None) = (&self.host, &self.bell) {
            // It may have waited long for its turn, or failed before: others must not see it as
            // stalled from the beginning.
            host.beat();
        }
        let mut batch = Batch::new(&self.place, &database.connection, me, self.status);
        let done = batch.run(jobs, outcomes);
        let open = done.is_err() && !database.connection.is_autocommit();
        // What broke the transaction may break the rollback, too. Then closing the connection
        // ends it and releases SQLite's lock.
        let stuck = open && database.connection.execute_batch("ROLLBACK").is_err();
        drop(pass);
        let Batch {
            status,
            changes,
            start,
            heads,
            ..
        } = batch;
        if stuck {
            self.database = None;
        }
        if done? {
            self.publish(heads);
            self.notify(changes, start);
        }
        if status == HostStatus::Lost && self.status != status {
            self.status = status;
            shared.waker.wake([Wake::Fenced]);
        }
        self.listen();
        Ok(())
    }

    /// Returns this writer's host, created on first use.
    fn host(&mut self) -> io::Result<Uuid> {
        let host = match &mut self.host {
            Some(host) => host,
            host @ None => host.insert(self.place.hosts().settle(&self.shared.waker)?),
        };
        Ok(host.id)
    }

    /// Tells readers of feeds what is durable now, in this process and in others.
    fn publish(&mut self, heads: Vec<(RealmId, u64)>) {
        if heads.is_empty() {
            return;
        }
        for (realm, head) in heads {
            self.shared.feed.publish(realm, head);
        }
        self.notifier.ring_for_readers();
    }

    /// Notifies everyone concerned of what is durable now.
    fn notify(&mut self, changes: Changes, start: Option<Start>) {
        if let Some(start) = start {
            self.status = HostStatus::Settled;
            // The others must start watching this host's process.
            for other in &start.others {
                self.notifier.ring(*other, BTreeSet::new());
            }
            self.start = Some(start);
        }
        if let Some(database) = &self.database {
            let me = self
                .host
                .as_ref()
                .map(|host| (host.id, &*self.shared.waker));
            self.notifier.notify(&database.connection, me, changes);
        }
    }

    /// Starts the bell of a host that has its row. If that fails now, it is tried after the next
    /// batch.
    fn listen(&mut self) {
        let (Some(host), Some(start)) = (&self.host, &self.start) else {
            return;
        };
        if let Ok(bell) = Bell::start(&self.place, host, &self.shared, &self.jobs, start.clone()) {
            (self.bell, self.start) = (bell, None);
        }
    }

    /// Answers the jobs of a batch.
    fn answer(
        &self,
        jobs: &mut Vec<SqliteJob>,
        outcomes: &mut Vec<WriteOutcome>,
        written: Result<(), SqliteCause>,
    ) {
        outcomes.resize_with(jobs.len(), || Ok(WriteAnswer::default()));
        for (job, outcome) in jobs.drain(..).zip(outcomes.drain(..)) {
            let outcome = match &written {
                Ok(()) => outcome,
                // Refusals are replaced, too: they may rest on earlier jobs of the batch that
                // were not committed.
                Err(cause) => Err(cause.at(&self.place)),
            };
            let sent = job.answer.send(outcome);
            // A caller that stopped waiting needs no answer. But if it took an agent, nobody
            // knows that this host holds it, so it is released again.
            if let (WriteRequest::Take(agent), Err(Ok(taken))) = (job.work, sent) {
                let (work, (answer, _)) = (
                    WriteRequest::Release(agent, taken.epoch),
                    oneshot::channel(),
                );
                let queued = self
                    .jobs
                    .upgrade()
                    .map(|jobs| jobs.try_send(SqliteJob { work, answer }));
                drop(queued);
            }
        }
    }

    /// Releases what this host still holds, and notifies the others.
    fn leave(mut self) -> Result<(), SqliteFailure> {
        // First, because the host's own departure must not look like being fenced.
        self.bell = None;
        let (Some(host), Some(database)) = (self.host.take(), &self.database) else {
            return Ok(());
        };
        if self.status != HostStatus::Settled {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let _writing = shared.gate.write();
        let pass = database.enter(&self.place, &shared)?;
        // Immediate: a transaction that begins by reading cannot write once somebody else has
        // written.
        let transaction =
            Transaction::new_unchecked(&database.connection, TransactionBehavior::Immediate)?;
        let mut changes = Changes::default();
        free::host(&transaction, host.id, &mut changes)?;
        let heads = feed::write(&transaction, &changes.feed)?;
        transaction.commit()?;
        drop(pass);
        // After the commit: with its lock free others would release the host a second time.
        drop(host);
        self.notifier.notify(&database.connection, None, changes);
        self.publish(heads);
        Ok(())
    }
}

impl WriterConnection {
    /// Waits for this process's turn. A store in memory has only one process.
    fn enter(&self, place: &DatabasePlace, shared: &SharedState) -> io::Result<Option<Pass<'_>>> {
        let began = Instant::now();
        let patience = shared.gate.patience(place.timing.patience);
        let pass = self
            .turnstile
            .as_ref()
            .map(|turnstile| turnstile.enter(patience))
            .transpose();
        shared.waited(began.elapsed());
        pass
    }
}

#[cfg(test)]
mod tests {
    use posse_port::model::Encoded;
    use posse_port::store::{Birth, Epoch, NewEntry, Step, StoreError};
    use posse_protocol::{EntryKind, PermissionMode};

    use super::*;

    /// Returns a birth with an entry of 100 kB.
    fn heavy() -> (SqliteJob, oneshot::Receiver<WriteOutcome>) {
        let (answer, answered) = oneshot::channel();
        let encoded = |length| Encoded {
            bytes: vec![b'x'; length].into(),
            mark_at: None,
        };
        let birth = Birth {
            origin: None,
            path: "/main".into(),
            model: "m".into(),
            dialect: "test".into(),
            mode: PermissionMode::Default,
            cwd: "/".into(),
            preamble: encoded(1),
            segments: Vec::new(),
        };
        let (kind, encoded) = (EntryKind::Prompt, encoded(100_000));
        let id = Uuid::now_v7();
        let step = Step {
            birth: Some(Box::new(birth)),
            entries: vec![NewEntry {
                seq: 0,
                kind,
                head: None,
                loaded: None,
                encoded,
                checksum: 0,
                reply: None,
            }],
            ..Step::new(id.into(), id.into(), Epoch(1), 0)
        };
        (
            SqliteJob {
                work: WriteRequest::Commit(Box::new(step)),
                answer,
            },
            answered,
        )
    }

    fn serve(writer: &mut Writer, jobs: Vec<SqliteJob>) {
        let (mut jobs, mut outcomes) = (jobs, Vec::new());
        let written = writer.write(&jobs, &mut outcomes);
        writer.answer(&mut jobs, &mut outcomes, written);
    }

    #[test]
    fn a_full_disk_fails_the_whole_batch_and_is_survived() {
        let place = DatabasePlace::memory().unwrap();
        let connection = place.connect().unwrap();
        super::super::schema::bring_up_to_date(&place, &connection).unwrap();
        let database = WriterConnection {
            connection: place.connect().unwrap(),
            turnstile: None,
        };
        let space = |database: &WriterConnection, most: u32| {
            database
                .connection
                .pragma_update(None, "max_page_count", most)
        };
        space(&database, 60).unwrap();
        let (jobs, _queue) = mpsc::channel(1);
        let mut writer = Writer::new(place, Arc::default(), jobs.downgrade());
        writer.database = Some(database);

        let (mut jobs, mut waiting) = (Vec::new(), Vec::new());
        for (job, answered) in [heavy(), heavy(), heavy()] {
            jobs.push(job);
            waiting.push(answered);
        }
        serve(&mut writer, jobs);
        for mut answered in waiting {
            let outcome = answered.try_recv().unwrap();
            assert!(
                matches!(outcome, Err(StoreError::Full { .. })),
                "{outcome:?}"
            );
        }
        let agents =
            || connection.query_row("SELECT count(*) FROM agent", [], |row| row.get::<_, i64>(0));
        assert_eq!(agents().unwrap(), 0);

        space(writer.database.as_ref().unwrap(), 1_000_000).unwrap();
        let (job, mut answered) = heavy();
        serve(&mut writer, vec![job]);
        assert!(answered.try_recv().unwrap().is_ok());
        assert_eq!(agents().unwrap(), 1);
    }
}
