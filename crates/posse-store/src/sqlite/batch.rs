//! One transaction with jobs of many agents, each of which may be refused alone.
//!
//! A host has a row from the transaction in which it first holds an agent. The row is never
//! created again: if it is gone, others have taken the host for dead, and it holds nothing any
//! more.

use std::collections::BTreeSet;
use std::io;

use posse_port::store::{Archive, Committed, StoreError};
use posse_protocol::{AgentId, RealmId};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::changes::Changes;
use super::error::{SqliteCause, SqliteFailure};
use super::feed::{self, NewFeedRow};
use super::host::HostLiveness;
use super::job::{SqliteJob, WriteRequest};
use super::place::DatabasePlace;
use super::{claim, free, host_rows, operation, schema, step};
use crate::host_status::HostStatus;
use crate::write_outcome::{WriteAnswer, WriteOutcome};

/// What a host knows when it gets its row. It is notified of every change after that.
#[derive(Clone)]
pub(super) struct Start {
    /// The last change of a task list.
    pub(super) cursor: i64,
    /// The other hosts.
    pub(super) others: BTreeSet<Uuid>,
}

/// A batch of jobs and the changes that others must be told about.
pub(super) struct Batch<'a> {
    place: &'a DatabasePlace,
    connection: &'a Connection,
    /// This host, if one of the jobs needs it.
    me: Option<Uuid>,
    pub(super) status: HostStatus,
    /// What others should know once the batch is durable.
    pub(super) changes: Changes,
    /// Set if this host got its row in this batch.
    pub(super) start: Option<Start>,
    /// The last numbers of the realms that it wrote in.
    pub(super) heads: Vec<(RealmId, u64)>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        place: &'a DatabasePlace,
        connection: &'a Connection,
        me: Option<Uuid>,
        status: HostStatus,
    ) -> Self {
        Self {
            place,
            connection,
            me,
            status,
            changes: Changes::default(),
            start: None,
            heads: Vec::new(),
        }
    }

    /// Does `jobs` in one transaction. Returns true if it wrote anything.
    ///
    /// A savepoint around each job costs a fifth of the work, and refusals are rare. So the jobs
    /// are first done without; only a batch with a refusal is undone and done again with
    /// savepoints.
    pub(super) fn run(
        &mut self,
        jobs: &[SqliteJob],
        outcomes: &mut Vec<WriteOutcome>,
    ) -> Result<bool, SqliteCause> {
        self.begin()?;
        for job in jobs {
            let outcome = refused_or_done(self.perform(&job.work))?;
            let refused = outcome.is_err();
            outcomes.push(outcome);
            if refused {
                self.execute("ROLLBACK")?;
                if jobs.len() == 1 {
                    return Ok(false);
                }
                outcomes.clear();
                return self.run_apart(jobs, outcomes);
            }
        }
        self.commit()?;
        Ok(true)
    }

    /// Does `jobs` in one transaction, with a savepoint around each.
    fn run_apart(
        &mut self,
        jobs: &[SqliteJob],
        outcomes: &mut Vec<WriteOutcome>,
    ) -> Result<bool, SqliteCause> {
        self.begin()?;
        for job in jobs {
            // What is rolled back must not be announced.
            let before = self.changes.clone();
            self.execute("SAVEPOINT job")?;
            let outcome = refused_or_done(self.perform(&job.work))?;
            if outcome.is_err() {
                self.execute("ROLLBACK TO job")?;
                self.changes = before;
            }
            self.execute("RELEASE job")?;
            outcomes.push(outcome);
        }
        self.commit()?;
        Ok(true)
    }

    /// Writes the feed and ends the transaction.
    fn commit(&mut self) -> rusqlite::Result<()> {
        self.heads = feed::write(self.connection, &self.changes.feed)?;
        self.execute("COMMIT")
    }

    /// Begins the transaction, and creates this host's row if it is needed.
    fn begin(&mut self) -> Result<(), SqliteCause> {
        // Immediate takes the write lock now: a transaction that reads first and then writes
        // fails if somebody else has written in between.
        self.execute("BEGIN IMMEDIATE")?;
        self.changes = Changes::default();
        self.start = None;
        let Some(me) = self.me else { return Ok(()) };
        match self.status {
            HostStatus::Stranger => {
                self.start = Some(refused_or_done(self.settle(me))?.map_err(io::Error::other)?);
            }
            HostStatus::Settled => {
                let sql = "SELECT 1 FROM host WHERE id = ?1";
                if !self
                    .connection
                    .prepare_cached(sql)?
                    .exists([me.as_bytes()])?
                {
                    self.status = HostStatus::Lost;
                }
            }
            HostStatus::Lost => {}
        }
        Ok(())
    }

    /// Creates the host's row, and releases what hosts left that died while nobody was running.
    fn settle(&mut self, me: Uuid) -> Result<Start, SqliteFailure> {
        let mut others = host_rows::hosts(self.connection)?;
        others.remove(&me);
        for other in others.clone() {
            if self.free_dead(other)? {
                others.remove(&other);
            }
        }
        // The row may exist already, from a commit that was durable although it returned an
        // error.
        let sql = "INSERT OR IGNORE INTO host (id, version) VALUES (?1, ?2)";
        self.connection
            .prepare_cached(sql)?
            .execute(params![me.as_bytes(), schema::KNOWN as i64])?;
        let sql = "SELECT last FROM changes";
        let cursor = self
            .connection
            .prepare_cached(sql)?
            .query_row([], |row| row.get(0))?;
        Ok(Start { cursor, others })
    }

    /// Does one job.
    fn perform(&mut self, work: &WriteRequest) -> Result<WriteAnswer, SqliteFailure> {
        let (place, connection) = (self.place, self.connection);
        match work {
            WriteRequest::Commit(step) => {
                let holder = match &step.birth {
                    Some(_) => Some(self.holder(step.agent)?),
                    None => None,
                };
                let committed = step::write(place, connection, step, holder, &mut self.changes)?;
                Ok(WriteAnswer {
                    committed,
                    epoch: step.epoch,
                })
            }
            WriteRequest::Operate(order) => {
                self.changes
                    .feed(order.realm, NewFeedRow::realm(order.topics()));
                let results = operation::order(place, connection, order, &mut self.changes)?;
                Ok(WriteAnswer {
                    committed: Committed {
                        results,
                        mail_waits: false,
                    },
                    ..WriteAnswer::default()
                })
            }
            WriteRequest::Import(archive) => {
                let row = NewFeedRow::realm(Archive::TOPICS);
                self.changes.feed(archive.team.realm, row);
                operation::import(connection, archive, &mut self.changes)?;
                Ok(WriteAnswer::default())
            }
            WriteRequest::Take(agent) => {
                let me = self.holder(*agent)?;
                let epoch = claim::take(connection, *agent, me, place, &mut self.changes)?;
                Ok(WriteAnswer {
                    epoch,
                    ..WriteAnswer::default()
                })
            }
            WriteRequest::Release(agent, epoch) => {
                claim::release(connection, *agent, *epoch, &mut self.changes)?;
                Ok(WriteAnswer::default())
            }
            WriteRequest::TrimFeed => {
                feed::trim(connection, place.timing.feed_age)?;
                Ok(WriteAnswer::default())
            }
            WriteRequest::Free(host) => {
                // Others may have been faster.
                if host_rows::hosts(connection)?.contains(host) {
                    self.free_dead(*host)?;
                }
                Ok(WriteAnswer::default())
            }
        }
    }

    /// Releases what a host held if it is dead, and returns true if it is. If that cannot be
    /// determined, it is left for later.
    fn free_dead(&mut self, host: Uuid) -> Result<bool, SqliteFailure> {
        let hosts = self.place.hosts();
        let dead = matches!(hosts.look(host), Ok(HostLiveness::Dead));
        if dead {
            free::host(self.connection, host, &mut self.changes)?;
            hosts.forget(host);
        }
        Ok(dead)
    }

    /// Returns this host, which is about to hold an agent. Refused if it has been taken for dead.
    fn holder(&self, agent: AgentId) -> Result<Uuid, SqliteFailure> {
        let fenced = SqliteFailure::Refused(StoreError::Fenced { agent });
        self.me
            .filter(|_| self.status != HostStatus::Lost)
            .ok_or(fenced)
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// Separates refusals, which concern one job, from failures, which concern all.
fn refused_or_done<T>(
    done: Result<T, SqliteFailure>,
) -> Result<Result<T, StoreError>, SqliteCause> {
    match done {
        Ok(answer) => Ok(Ok(answer)),
        Err(SqliteFailure::Refused(error)) => Ok(Err(error)),
        Err(SqliteFailure::Broken(cause)) => Err(cause),
    }
}
