//! The one thread of a process that writes.
//!
//! It takes whatever is waiting, commits it in one transaction, and answers when that is durable: one
//! sync of the disk serves every agent that had something to say meanwhile. It never waits for more.

use std::io;
use std::thread::{self, JoinHandle};

use posse_protocol::AgentId;
use posse_runtime::port::store::{Archive, Committed, Epoch, Order, Step, StoreError};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::error::{Cause, Failure};
use super::host::Host;
use super::news::News;
use super::place::Place;
use super::turnstile::Turnstile;
use super::{claim, operation, step};

/// Jobs in one transaction; what waits beyond them has the next.
const BATCH: usize = 512;

/// Something to be written.
pub(super) enum Work {
    Commit(Box<Step>),
    Operate(Box<Order>),
    Import(Box<Archive>),
    Take(AgentId),
    Release(AgentId, Epoch),
}

/// Work, and who waits for it.
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) answer: oneshot::Sender<Outcome>,
}

/// What came of work.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Of a take.
    pub(super) epoch: Epoch,
    /// Of a step; of an order the results alone.
    pub(super) committed: Committed,
}

/// Starts the writer; it ends when nobody can send jobs any more and all are done.
pub(super) fn start(place: Place, mut queue: mpsc::Receiver<Job>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("posse-store".into()).spawn(move || {
        let mut writer = Writer { place, door: None, host: None };
        let (mut jobs, mut outcomes) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        while queue.blocking_recv_many(&mut jobs, BATCH) > 0 {
            let written = writer.write(&jobs, &mut outcomes);
            writer.answer(&mut jobs, &mut outcomes, written);
        }
    })
}

struct Writer {
    place: Place,
    /// Opened with the first job.
    door: Option<Door>,
    /// Made when it is about to hold an agent.
    host: Option<Host>,
}

/// The way to the data.
struct Door {
    connection: Connection,
    turnstile: Option<Turnstile>,
}

pub(super) type Outcome = Result<Answer, StoreError>;

impl Writer {
    /// Commits a batch. `outcomes` gets one for each job, true only if this returns `Ok`.
    fn write(&mut self, jobs: &[Job], outcomes: &mut Vec<Outcome>) -> Result<(), Cause> {
        let Self { place, door, host } = self;
        let door = match door {
            Some(door) => door,
            None => door.insert(Door { connection: place.connect()?, turnstile: place.turnstile()? }),
        };
        let pass = door.turnstile.as_ref().map(Turnstile::enter).transpose()?;
        let holds = |job: &Job| match &job.work {
            Work::Commit(step) => step.birth.is_some(),
            Work::Take(_) => true,
            _ => false,
        };
        if host.is_none() && jobs.iter().any(holds) {
            // Apart from the batch, which may be undone.
            let settled = host.insert(place.hosts().settle()?);
            let sql = "INSERT INTO host (id) VALUES (?1)";
            door.connection.prepare_cached(sql)?.execute([settled.id.as_bytes()])?;
        }
        let mut news = News::default();
        let done = transact(&door.connection, jobs, outcomes, |work| {
            perform(place, &door.connection, work, host, &mut news)
        });
        let open = done.is_err() && !door.connection.is_autocommit();
        // What broke the transaction may break this too; then closing ends it, and frees SQLite's lock.
        let stuck = open && door.connection.execute_batch("ROLLBACK").is_err();
        drop(pass);
        if stuck {
            self.door = None;
        }
        done
    }

    fn answer(&self, jobs: &mut Vec<Job>, outcomes: &mut Vec<Outcome>, written: Result<(), Cause>) {
        outcomes.resize_with(jobs.len(), || Ok(Answer::default()));
        for (job, outcome) in jobs.drain(..).zip(outcomes.drain(..)) {
            let outcome = match &written {
                Ok(()) => outcome,
                Err(cause) => outcome.and_then(|_| Err(cause.at(&self.place))),
            };
            // Whoever has stopped waiting needs no answer.
            let _ = job.answer.send(outcome);
        }
    }
}

/// One transaction of `jobs`, each of which may be refused alone.
///
/// A savepoint around each job costs a fifth of the work, and refusals are rare: they are looked for
/// first without, and only a batch that has one is undone and done again with savepoints.
fn transact(
    connection: &Connection,
    jobs: &[Job],
    outcomes: &mut Vec<Outcome>,
    mut perform: impl FnMut(&Work) -> Result<Answer, Failure>,
) -> Result<(), Cause> {
    let run = |sql| connection.prepare_cached(sql)?.execute([]);
    run("BEGIN IMMEDIATE")?;
    for job in jobs {
        let outcome = refused_or_done(perform(&job.work))?;
        let refused = outcome.is_err();
        outcomes.push(outcome);
        if refused {
            run("ROLLBACK")?;
            if jobs.len() > 1 {
                outcomes.clear();
                transact_apart(connection, jobs, outcomes, perform)?;
            }
            return Ok(());
        }
    }
    run("COMMIT")?;
    Ok(())
}

/// The same with a savepoint around each job.
fn transact_apart(
    connection: &Connection,
    jobs: &[Job],
    outcomes: &mut Vec<Outcome>,
    mut perform: impl FnMut(&Work) -> Result<Answer, Failure>,
) -> Result<(), Cause> {
    let run = |sql| connection.prepare_cached(sql)?.execute([]);
    run("BEGIN IMMEDIATE")?;
    for job in jobs {
        run("SAVEPOINT job")?;
        let outcome = refused_or_done(perform(&job.work))?;
        if outcome.is_err() {
            run("ROLLBACK TO job")?;
        }
        run("RELEASE job")?;
        outcomes.push(outcome);
    }
    run("COMMIT")?;
    Ok(())
}

/// Tells what concerns one job from what concerns all.
fn refused_or_done(done: Result<Answer, Failure>) -> Result<Outcome, Cause> {
    match done {
        Ok(answer) => Ok(Ok(answer)),
        Err(Failure::Refused(error)) => Ok(Err(error)),
        Err(Failure::Broken(cause)) => Err(cause),
    }
}

fn perform(
    place: &Place,
    connection: &Connection,
    work: &Work,
    host: &mut Option<Host>,
    news: &mut News,
) -> Result<Answer, Failure> {
    match work {
        Work::Commit(step) => {
            let holder = match &step.birth {
                Some(_) => Some(settled(place, host)?),
                None => None,
            };
            let committed = step::write(place, connection, step, holder, news)?;
            Ok(Answer { committed, epoch: step.epoch })
        }
        Work::Operate(order) => {
            let results = operation::order(place, connection, order, news)?;
            Ok(Answer { committed: Committed { results, mail_waits: false }, ..Answer::default() })
        }
        Work::Import(archive) => {
            operation::import(connection, archive, news)?;
            Ok(Answer::default())
        }
        Work::Take(agent) => {
            let epoch = claim::take(connection, *agent, settled(place, host)?, place, news)?;
            Ok(Answer { epoch, ..Answer::default() })
        }
        Work::Release(agent, epoch) => {
            claim::release(connection, *agent, *epoch, news)?;
            Ok(Answer::default())
        }
    }
}

/// This writer's host, made when it is about to hold its first agent: looking leaves no traces.
fn settled(place: &Place, host: &mut Option<Host>) -> io::Result<Uuid> {
    let host = match host {
        Some(host) => host,
        None => host.insert(place.hosts().settle()?),
    };
    Ok(host.id)
}

#[cfg(test)]
mod tests {
    use posse_protocol::{EntryKind, PermissionMode};
    use posse_runtime::port::model::Piece;
    use posse_runtime::port::store::{Birth, NewEntry};

    use super::*;

    /// A birth with an entry of 100 kB.
    fn heavy() -> (Job, oneshot::Receiver<Outcome>) {
        let (answer, answered) = oneshot::channel();
        let piece = |length| Piece { bytes: vec![b'x'; length].into(), mark_at: None };
        let birth = Birth {
            parent: None,
            path: "/main".into(),
            model: "m".into(),
            dialect: "test".into(),
            mode: PermissionMode::Default,
            cwd: "/".into(),
            preamble: piece(1),
            segments: Vec::new(),
        };
        let (kind, piece) = (EntryKind::Prompt, piece(100_000));
        let step = Step {
            birth: Some(Box::new(birth)),
            entries: vec![NewEntry { seq: 0, kind, piece, checksum: 0, reply: None }],
            ..Step::new(Uuid::now_v7().into(), Uuid::now_v7().into(), Epoch(1), 0)
        };
        (Job { work: Work::Commit(Box::new(step)), answer }, answered)
    }

    fn serve(writer: &mut Writer, jobs: Vec<Job>) {
        let (mut jobs, mut outcomes) = (jobs, Vec::new());
        let written = writer.write(&jobs, &mut outcomes);
        writer.answer(&mut jobs, &mut outcomes, written);
    }

    #[test]
    fn a_full_disk_fails_the_whole_batch_and_is_survived() {
        let place = Place::memory().unwrap();
        let connection = place.connect().unwrap();
        super::super::schema::bring_up_to_date(&place, &connection).unwrap();
        let door = Door { connection: place.connect().unwrap(), turnstile: None };
        let space = |door: &Door, most: u32| door.connection.pragma_update(None, "max_page_count", most);
        space(&door, 60).unwrap();
        let mut writer = Writer { place, door: Some(door), host: None };

        let (mut jobs, mut waiting) = (Vec::new(), Vec::new());
        for (job, answered) in [heavy(), heavy(), heavy()] {
            jobs.push(job);
            waiting.push(answered);
        }
        serve(&mut writer, jobs);
        for mut answered in waiting {
            let outcome = answered.try_recv().unwrap();
            assert!(matches!(outcome, Err(StoreError::Full { .. })), "{outcome:?}");
        }
        let agents = || connection.query_row("SELECT count(*) FROM agent", [], |row| row.get::<_, i64>(0));
        assert_eq!(agents().unwrap(), 0);

        space(writer.door.as_ref().unwrap(), 1_000_000).unwrap();
        let (job, mut answered) = heavy();
        serve(&mut writer, vec![job]);
        assert!(answered.try_recv().unwrap().is_ok());
        assert_eq!(agents().unwrap(), 1);
    }
}
