//! The bare side: the same HTTP crate, streams parsed, the same rows in the same number of commits,
//! and nothing else: no fencing, no checksums, no events, no second thread.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

use posse_protocol::{ReplyFacts, StopReason, Usage};
use posse_store::Sqlite;
use posse_testkit::bare;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::ours::SYSTEM;
use crate::{Failed, cpu_ms};

/// An entry of typical size.
pub(crate) const ENTRY: &str = r#"{"role":"user","content":[{"type":"text","text":"A question or an answer of the usual length: a few hundred bytes, as most of them are. It goes on for a while, names a file or two, asks for a change here and a test there, and then it ends. A question or an answer of the usual length: a few hundred bytes, as most of them are."}]}"#;

pub(crate) const USAGE: Usage = Usage {
    input: 12,
    cache_read: 3400,
    cache_write_5m: 80,
    cache_write_1h: 0,
    output: 77,
    thinking: 0,
};

pub(crate) static FACTS: LazyLock<ReplyFacts> = LazyLock::new(|| ReplyFacts {
    id: "msg_0123456789".into(),
    model: "claude-opus-5".into(),
    stop: Some(StopReason::EndTurn),
    usage: USAGE,
    missed: None,
});

/// The store's own tables, with a plain connection to them.
struct Rows {
    connection: Connection,
}

impl Rows {
    fn open(directory: &Path) -> Result<Self, Failed> {
        let path = directory.join("bare.db");
        drop(Sqlite::open(&path)?);
        let connection = Connection::open(&path)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self { connection })
    }

    fn agent(&self, id: &[u8]) -> Result<(), Failed> {
        self.connection.execute(
            "INSERT INTO agent (realm, id, epoch, own, state, used_ms, mode, inherited, path, model, dialect, cwd,
             preamble, created_ms) VALUES (?1, ?1, 1, 0, 0, 0, 'default', 0, '/main', 'claude-opus-5', 'anthropic',
             '/work', x'00', 0)",
            [id],
        )?;
        Ok(())
    }

    fn begin(&self) -> Result<(), Failed> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])?;
        Ok(())
    }

    fn commit(&self) -> Result<(), Failed> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn entry(&self, id: &[u8], seq: u64, reply: bool, bytes: &[u8]) -> Result<(), Failed> {
        let at = 1_794_700_800_000 + seq as i64;
        let (state, facts) = if reply {
            (0, Some(serde_json::to_string(&*FACTS)?))
        } else {
            (1, None)
        };
        let connection = &self.connection;
        connection
            .prepare_cached(
                "UPDATE agent SET used_ms = ?2, own = own + 1, state = ?3, step = ?4, result = NULL
                 WHERE realm = ?1 AND id = ?1",
            )?
            .execute(params![id, at, state, uuid::Uuid::now_v7().as_bytes()])?;
        connection
            .prepare_cached(
                "INSERT INTO entry (realm, agent, seq, kind, at_ms, checksum, mark_at, reply, bytes)
                 VALUES (?1, ?1, ?2, ?3, ?4, ?2, ?5, ?6, ?7)",
            )?
            .execute(params![id, seq as i64, 1 + i64::from(reply), at, bytes.len() as i64, facts, bytes])?;
        if reply {
            let Usage {
                input,
                cache_read,
                cache_write_5m,
                cache_write_1h,
                output,
                thinking,
            } = USAGE;
            let usage = [
                input,
                cache_read,
                cache_write_5m,
                cache_write_1h,
                output,
                thinking,
            ]
            .map(|n| n as i64);
            let [a, b, c, d, e, f] = usage;
            connection
                .prepare_cached(
                    "INSERT INTO total (realm, agent, model, purpose, calls, input, cache_read, cache_write_5m,
                     cache_write_1h, output, thinking, missed)
                     VALUES (?1, ?1, 'claude-opus-5', 0, 1, ?2, ?3, ?4, ?5, ?6, ?7, 0) ON CONFLICT DO
                     UPDATE SET calls = calls + 1, input = input + ?2, cache_read = cache_read + ?3,
                     cache_write_5m = cache_write_5m + ?4, cache_write_1h = cache_write_1h + ?5,
                     output = output + ?6, thinking = thinking + ?7",
                )?
                .execute(params![id, a, b, c, d, e, f])?;
            connection
                .prepare_cached(
                    "INSERT INTO charge (realm, agent, model, nth, at_ms, input, cache_read, cache_write_5m,
                     cache_write_1h, output, thinking) VALUES (?1, ?1, 'claude-opus-5', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )?
                .execute(params![id, seq as i64, at, a, b, c, d, e, f])?;
        }
        Ok(())
    }
}

/// Writes the rows of [`ours::steps`](crate::ours::steps), `agents` of them in each commit.
pub(crate) fn steps(directory: &Path, agents: u32, batches: u64) -> Result<Value, Failed> {
    let rows = Rows::open(directory)?;
    let ids: Vec<[u8; 16]> = (0..agents)
        .map(|_| *uuid::Uuid::now_v7().as_bytes())
        .collect();
    for id in &ids {
        rows.agent(id)?;
        rows.entry(id, 0, false, ENTRY.as_bytes())?;
    }
    let start = Instant::now();
    for number in 1..=batches {
        rows.begin()?;
        for id in &ids {
            rows.entry(id, number, number % 2 == 1, ENTRY.as_bytes())?;
        }
        rows.commit()?;
    }
    let steps = u64::from(agents) * batches;
    Ok(json!({"per_s": steps as f64 / start.elapsed().as_secs_f64()}))
}

/// Runs the conversation of [`ours::turns`](crate::ours::turns), after a warm-up.
pub(crate) async fn turns(url: &str, directory: &Path, turns: u32) -> Result<Value, Failed> {
    let http = posse_model::http_client(url)?;
    let rows = Rows::open(directory)?;
    let url = format!("{url}/v1/messages");
    converse(&http, &rows, &url, 1).await?;
    let before = cpu_ms()?;
    converse(&http, &rows, &url, turns).await?;
    Ok(json!({"cpu_ms": cpu_ms()? - before}))
}

async fn converse(
    http: &reqwest::Client,
    rows: &Rows,
    url: &str,
    turns: u32,
) -> Result<(), Failed> {
    let id = *uuid::Uuid::now_v7().as_bytes();
    let mut history = String::new();
    for number in 0..turns {
        let message =
            json!({"role": "user", "content": [{"type": "text", "text": format!("prompt {number}")}]})
                .to_string();
        rows.begin()?;
        if number == 0 {
            rows.agent(&id)?;
        }
        rows.entry(&id, u64::from(2 * number), false, message.as_bytes())?;
        rows.commit()?;
        if number > 0 {
            history.push(',');
        }
        history.push_str(&message);
        let system = SYSTEM.repeat(100);
        let body = format!(
            r#"{{"model":"claude-opus-5","system":[{{"type":"text","text":"{system}"}}],"max_tokens":4096,"stream":true,"messages":[{history}]}}"#
        );
        let request = http
            .post(url)
            .header("content-type", "application/json")
            .header("anthropic-version", "2026-10-21")
            .header("x-api-key", "test")
            .body(body);
        let text = bare::read(request).await?;
        let message =
            json!({"role": "assistant", "content": [{"type": "text", "text": text}]}).to_string();
        rows.begin()?;
        rows.entry(&id, u64::from(2 * number + 1), true, message.as_bytes())?;
        rows.commit()?;
        history.push(',');
        history.push_str(&message);
    }
    Ok(())
}
