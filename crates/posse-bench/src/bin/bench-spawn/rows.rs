//! The rows that posse stores for leaf work, written without a fence, checksums or savepoints; but
//! in one transaction for all waiting steps, as in the store.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use posse_store::Sqlite;
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use crate::Failed;

/// A row of a step.
pub(crate) enum Row {
    Agent {
        parent: Option<Id>,
    },
    Entry {
        seq: i64,
        kind: i64,
        bytes: Vec<u8>,
        facts: Option<String>,
    },
    Calls {
        seq: i64,
        ids: Vec<String>,
        tool: &'static str,
    },
    Done {
        seq: i64,
        ordinal: i64,
        content: String,
    },
    Charge {
        nth: i64,
    },
    Ended {
        text: String,
    },
}

pub(crate) type Id = [u8; 16];

struct Job {
    agent: Id,
    rows: Vec<Row>,
    written: oneshot::Sender<()>,
}

/// A writer thread. It ends when this and all its clones are dropped.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    realm: Id,
}

impl Writer {
    pub(crate) fn start(directory: &Path, preamble: Vec<u8>) -> Result<Self, Failed> {
        let path = directory.join("bare.db");
        drop(Sqlite::open(&path)?);
        let connection = Connection::open(&path)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.set_prepared_statement_cache_capacity(64);
        let realm = new_id();
        connection.execute(
            "INSERT INTO preamble (realm, hash, mark_at, bytes) VALUES (?1, ?1, 1, ?2)",
            params![realm, preamble],
        )?;
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::spawn(move || {
            while let Ok(first) = queue.recv() {
                let batch: Vec<Job> = std::iter::once(first).chain(queue.try_iter()).collect();
                if write(&connection, &realm, &batch).is_err() {
                    // The dropped channel tells the waiting callers.
                    return;
                }
                for job in batch {
                    let _ = job.written.send(());
                }
            }
        });
        Ok(Self { jobs, realm })
    }

    /// The session's main agent.
    pub(crate) fn main(&self) -> Id {
        self.realm
    }

    /// Writes a step of an agent; returns when it is durable.
    pub(crate) async fn commit(&self, agent: Id, rows: Vec<Row>) -> Result<(), Failed> {
        let (written, done) = oneshot::channel();
        self.jobs.send(Job {
            agent,
            rows,
            written,
        })?;
        Ok(done.await?)
    }
}

pub(crate) fn new_id() -> Id {
    *uuid::Uuid::now_v7().as_bytes()
}

fn write(connection: &Connection, realm: &Id, batch: &[Job]) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for job in batch {
        advance(connection, realm, job)?;
        for row in &job.rows {
            put(connection, realm, &job.agent, row)?;
        }
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// Updates the agent's row, in every step but the first.
fn advance(connection: &Connection, realm: &Id, job: &Job) -> rusqlite::Result<()> {
    let entries = job
        .rows
        .iter()
        .filter(|row| matches!(row, Row::Entry { .. }))
        .count();
    if let Some(Row::Agent { parent }) = job.rows.first() {
        let sql = "INSERT INTO agent (realm, id, epoch, own, state, used_ms, mode, inherited, prompt_agent, prompt_seq,
                       parent, path, model, dialect, cwd, preamble, created_ms, agent_type, description, call_seq,
                       call_ordinal, call_id, step)
                   VALUES (?1, ?2, 1, ?3, 1, ?4, 'default', 0, ?2, 0, ?5, '/main/general-purpose-1.17',
                       'claude-opus-5', 'anthropic', '/work/somewhere/or/other', ?1, ?4, 'general-purpose',
                       'A piece of work', 1, 17, 'toolu_0123456789', ?6)";
        let values = params![realm, job.agent, entries as i64, AT_MS, parent, new_id()];
        return connection.prepare_cached(sql)?.execute(values).map(drop);
    }
    let sql = "UPDATE agent SET used_ms = ?3, own = own + ?4, state = ?5, step = ?6, result = NULL
               WHERE realm = ?1 AND id = ?2";
    let values = params![realm, job.agent, AT_MS, entries as i64, 1, new_id()];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

const AT_MS: i64 = 1_794_700_800_000;

fn put(connection: &Connection, realm: &Id, agent: &Id, row: &Row) -> rusqlite::Result<()> {
    let execute = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<()> {
        connection.prepare_cached(sql)?.execute(values).map(drop)
    };
    match row {
        Row::Agent { .. } => Ok(()),
        Row::Entry { seq, kind, bytes, facts } => execute(
            "INSERT INTO entry (realm, agent, seq, kind, at_ms, checksum, mark_at, reply, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?3, ?6, ?7, ?8)",
            params![realm, agent, seq, kind, AT_MS, bytes.len() as i64, facts, bytes],
        ),
        Row::Calls { seq, ids, tool } => ids.iter().zip(0_i64..).try_for_each(|(id, ordinal)| {
            execute(
                "INSERT INTO call (realm, agent, seq, ordinal, id, tool, begun) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)",
                params![realm, agent, seq, ordinal, id, tool],
            )
        }),
        Row::Done { seq, ordinal, content } => execute(
            "UPDATE call SET is_error = 0, content = ?5 WHERE realm = ?1 AND agent = ?2 AND seq = ?3 AND ordinal = ?4",
            params![realm, agent, seq, ordinal, content],
        ),
        Row::Charge { nth } => {
            execute(
                "INSERT INTO total (realm, agent, model, purpose, calls, input, cache_read, cache_write_5m,
                 cache_write_1h, output, thinking, cost, missed)
                 VALUES (?1, ?2, 'claude-opus-5', 0, 1, 12, 3400, 80, 0, 77, 0, 1234, 0)
                 ON CONFLICT DO UPDATE SET calls = calls + 1, input = input + 12, cache_read = cache_read + 3400,
                 cache_write_5m = cache_write_5m + 80, output = output + 77, cost = cost + 1234",
                params![realm, agent],
            )?;
            execute(
                "INSERT INTO charge (realm, agent, model, nth, at_ms, input, cache_read, cache_write_5m,
                 cache_write_1h, output, thinking, cost)
                 VALUES (?1, ?2, 'claude-opus-5', ?3, ?4, 12, 3400, 80, 0, 77, 0, 1234)",
                params![realm, agent, nth, AT_MS],
            )
        }
        Row::Ended { text } => execute(
            "UPDATE agent SET state = 5, ended = ?3 WHERE realm = ?1 AND id = ?2",
            params![realm, agent, text],
        ),
    }
}
