//! Steps: the rows of a reply with a call, through posse and by plain statements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::store::Store;
use posse_store::Postgres;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::line::{Line, pipelined};
use crate::meter::Meter;
use crate::place::Place;
use crate::words::{Agent, CALL, FACTS, MODEL, Realms, USAGE, at, raised};
use crate::{Failed, Side};

/// The number of connections that posse writes with.
const LINES: usize = 4;

pub(crate) async fn run(
    place: &Place,
    side: Side,
    agents: usize,
    time: Duration,
    realms: Realms,
) -> Result<Value, Failed> {
    // It stays open on both sides, so that the rows are the same.
    let store = Arc::new(Postgres::open(&place.url)?);
    let agents = raised(&store, agents, realms).await?;
    match side {
        Side::Posse => posse(place, &store, agents, time).await,
        Side::Bare => bare(place, agents, time).await,
    }
}

async fn posse(
    place: &Place,
    store: &Arc<Postgres>,
    agents: Vec<Agent>,
    time: Duration,
) -> Result<Value, Failed> {
    let meter = Meter::begin(place.server()).await?;
    let end = Instant::now() + time;
    let mut running = JoinSet::new();
    for mut agent in agents {
        let store = Arc::clone(store);
        running.spawn(async move {
            let first = agent.seq;
            while Instant::now() < end {
                store.commit(agent.reply()).await?;
            }
            Ok::<_, Failed>(agent.seq - first)
        });
    }
    meter.end(sum(running).await?).await
}

async fn sum(mut running: JoinSet<Result<u64, Failed>>) -> Result<u64, Failed> {
    let mut sum = 0;
    while let Some(done) = running.join_next().await {
        sum += done??;
    }
    Ok(sum)
}

/// A whole step in one statement.
const STEP: &str = "
    WITH fenced AS (
        UPDATE pulse SET used_ms = $4, own = own + 1, step = $5, result = NULL
        WHERE realm = $1 AND agent = $2 AND epoch = 1 AND own = $3 RETURNING own),
    used AS (UPDATE root SET used_ms = $4 WHERE realm = $1 AND agent = $2),
    entered AS (
        INSERT INTO entry (realm, agent, seq, kind, at_ms, checksum, mark_at, reply, packed, bytes)
        SELECT $1, $2, $3, 2, $4, $3, $6::bigint, $7::text, $8::boolean, $9::bytea FROM fenced),
    asked AS (
        INSERT INTO call (realm, agent, seq, ordinal, id, tool, begun)
        SELECT $1, $2, $3, 0, $10::text, $11::text, false FROM fenced),
    charged AS (
        INSERT INTO charge (realm, agent, model, nth, at_ms, purpose, input, cache_read, cache_write_5m,
            cache_write_1h, output, thinking, missed)
        SELECT $1, $2, $12::text, $3, $4, 0, $13::bigint, $14::bigint, $15::bigint, 0, $16::bigint, 0, 0 FROM fenced)
    INSERT INTO total AS t (realm, agent, model, purpose, calls, input, cache_read, cache_write_5m, cache_write_1h,
        output, thinking, missed)
    SELECT $1, $2, $12::text, 0, 1, $13::bigint, $14::bigint, $15::bigint, 0, $16::bigint, 0, 0 FROM fenced
    ON CONFLICT (realm, agent, model, purpose) DO UPDATE SET calls = t.calls + 1, input = t.input + excluded.input,
        cache_read = t.cache_read + excluded.cache_read, cache_write_5m = t.cache_write_5m + excluded.cache_write_5m,
        cache_write_1h = t.cache_write_1h + excluded.cache_write_1h, output = t.output + excluded.output,
        thinking = t.thinking + excluded.thinking, missed = t.missed + excluded.missed";

/// An agent as stored in its rows.
struct Rows {
    realm: Uuid,
    agent: Uuid,
    seq: i64,
    at: i64,
    step: Uuid,
    mark: Option<i64>,
    reply: String,
    packed: bool,
    bytes: Vec<u8>,
    usage: [i64; 4],
}

impl Rows {
    /// Its next step has the bytes that posse stored of its first.
    async fn of(agent: &Agent, line: &Client) -> Result<Self, Failed> {
        let (realm, id) = (agent.realm.uuid(), agent.id.uuid());
        let sql =
            "SELECT mark_at, packed, bytes FROM entry WHERE realm = $1 AND agent = $2 AND seq = 0";
        let row = line.query_one(sql, &[&realm, &id]).await?;
        let usage = [
            USAGE.input,
            USAGE.cache_read,
            USAGE.cache_write_5m,
            USAGE.output,
        ]
        .map(u64::cast_signed);
        Ok(Self {
            realm,
            agent: id,
            seq: agent.seq.cast_signed() - 1,
            at: 0,
            step: Uuid::nil(),
            mark: row.try_get(0)?,
            reply: serde_json::to_string(&*FACTS)?,
            packed: row.try_get(1)?,
            bytes: row.try_get(2)?,
            usage,
        })
    }

    fn next(&mut self) {
        self.seq += 1;
        (self.at, self.step) = (at(self.seq.cast_unsigned()), Uuid::now_v7());
    }

    async fn write(
        &self,
        line: &Client,
        statement: &Statement,
    ) -> Result<u64, tokio_postgres::Error> {
        let [input, cache_read, cache_write, output] = &self.usage;
        let values: [&(dyn ToSql + Sync); 16] = [
            &self.realm,
            &self.agent,
            &self.seq,
            &self.at,
            &self.step,
            &self.mark,
            &self.reply,
            &self.packed,
            &self.bytes,
            &CALL.0,
            &CALL.1,
            &MODEL,
            input,
            cache_read,
            cache_write,
            output,
        ];
        line.execute(statement, &values).await
    }
}

/// Writes one step per transaction, or those of all agents that share a connection.
async fn bare(place: &Place, agents: Vec<Agent>, time: Duration) -> Result<Value, Failed> {
    let lines = Line::many(&place.url, LINES.min(agents.len())).await?;
    let mut shares: Vec<Vec<Rows>> = lines.iter().map(|_| Vec::new()).collect();
    let count = shares.len();
    for (at, agent) in agents.iter().enumerate() {
        shares[at % count].push(Rows::of(agent, lines[0].client()).await?);
    }
    let mut ready = Vec::new();
    for (line, share) in lines.into_iter().zip(shares) {
        let statement = line.client().prepare(STEP).await?;
        ready.push((line, statement, share));
    }
    let meter = Meter::begin(place.server()).await?;
    let end = Instant::now() + time;
    let mut running = JoinSet::new();
    for (line, statement, mut share) in ready {
        running.spawn(async move {
            let mut done = 0;
            while Instant::now() < end {
                share.iter_mut().for_each(Rows::next);
                together(line.client(), &statement, &share).await?;
                done += share.len() as u64;
            }
            Ok::<_, Failed>(done)
        });
    }
    meter.end(sum(running).await?).await
}

async fn together(line: &Client, statement: &Statement, share: &[Rows]) -> Result<(), Failed> {
    let written = match share {
        [one] => one.write(line, statement).await?,
        many => {
            let control = async |word: &'static str| line.batch_execute(word).await.map(|()| 0);
            let mut asking: Vec<crate::line::Asking<'_, u64>> = vec![Box::pin(control("BEGIN"))];
            for rows in many {
                asking.push(Box::pin(rows.write(line, statement)));
            }
            asking.push(Box::pin(control("COMMIT")));
            pipelined(asking).await?.iter().sum()
        }
    };
    if written == share.len() as u64 {
        Ok(())
    } else {
        Err("a step found other rows than it left".into())
    }
}
