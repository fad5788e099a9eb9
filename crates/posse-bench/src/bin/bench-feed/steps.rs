//! What the feed adds to a step: 16 agents of one realm write with it and without it, by turns.
//!
//! Without it means a store whose rows of the feed are not written, while nothing else changes: the
//! runtime still says what each step is about. On PostgreSQL the statements that number and insert
//! rows are cut out of posse's functions. On SQLite a trigger drops each row before it is inserted;
//! what binding and dropping a row costs is measured and taken off, since it belongs to the feed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::store::Store;
use posse_testkit::place::Place;
use posse_testkit::postgres::sql;
use posse_testkit::store_contract::realm;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::Failed;
use crate::words::Agent;

const AGENTS: usize = 16;
/// Time of one turn of a team.
const TURN: Duration = Duration::from_millis(60);
/// Rows that are dropped to see what that costs.
const DROPPED: u32 = 20_000;

pub(crate) async fn run(with: &Place, without: &Place, time: Duration) -> Result<Value, Failed> {
    // The tables are made by the first who opens a store.
    drop(without.open()?);
    let dropping_us = take_away_feed(without)?;
    let mut teams = [Team::new(with).await?, Team::new(without).await?];
    for team in &mut teams {
        team.turn().await?;
    }
    let (mut ratios, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
    let end = Instant::now() + time;
    while Instant::now() < end {
        // Neither is always the first.
        let order = if ratios.len() % 2 == 0 {
            [0, 1]
        } else {
            [1, 0]
        };
        let mut took = [0.0; 2];
        for at in order {
            took[at] = teams[at].turn().await?;
        }
        took[1] -= dropping_us;
        ratios.push(took[0] / took[1]);
        times[0].push(took[0]);
        times[1].push(took[1]);
    }
    let heads = [teams[0].head().await?, teams[1].head().await?];
    if heads[0] == 0 || heads[1] != 0 {
        return Err(format!("rows with the feed and without: {heads:?}").into());
    }
    let turns = ratios.len();
    let [with_us, without_us] = times.map(median);
    Ok(json!({
        "ratio": (median(ratios) * 1000.0).round() / 1000.0,
        "with_us": with_us.round(),
        "without_us": without_us.round(),
        "dropping_us": (dropping_us * 10.0).round() / 10.0,
        "turns": turns,
    }))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A store, and the agents that write to it.
struct Team {
    store: Arc<dyn Store>,
    agents: Vec<Agent>,
}

impl Team {
    async fn new(place: &Place) -> Result<Self, Failed> {
        let (store, mut agents) = (place.open()?, Vec::new());
        for _ in 0..AGENTS {
            agents.push(Agent::born(&*store).await?);
        }
        Ok(Self { store, agents })
    }

    /// Has all agents write at once for a while. Returns the microseconds of a step.
    async fn turn(&mut self) -> Result<f64, Failed> {
        let before: u64 = self.agents.iter().map(|agent| agent.seq).sum();
        let start = Instant::now();
        let mut writing = JoinSet::new();
        for mut agent in self.agents.drain(..) {
            let store = Arc::clone(&self.store);
            writing.spawn(async move {
                while start.elapsed() < TURN {
                    store.commit(agent.step()).await?;
                }
                Ok::<_, Failed>(agent)
            });
        }
        while let Some(done) = writing.join_next().await {
            self.agents.push(done??);
        }
        let took = start.elapsed().as_secs_f64() * 1e6;
        let after: u64 = self.agents.iter().map(|agent| agent.seq).sum();
        Ok(took / (after - before) as f64)
    }

    async fn head(&self) -> Result<u64, Failed> {
        Ok(self.store.feed(realm(), 0, 0).await?.head)
    }
}

/// Makes a store keep no feed. Returns the microseconds that it still spends on a row.
fn take_away_feed(place: &Place) -> Result<f64, Failed> {
    match place {
        Place::File(path) => {
            let connection = Connection::open(path)?;
            connection.execute_batch(
                "CREATE TRIGGER no_feed BEFORE INSERT ON feed BEGIN SELECT RAISE(IGNORE); END",
            )?;
            dropping(&connection)
        }
        Place::Server(url) => {
            cut(
                url,
                "add_to_feed(uuid, uuid, int, bigint, bigint)",
                "WITH next AS",
                "FROM next;",
            )?;
            cut(
                url,
                "plain_steps(jsonb, bytea[])",
                "WITH counted AS",
                "JOIN moved m ON m.id = x.realm;",
            )?;
            Ok(0.0)
        }
    }
}

/// Returns the microseconds of binding a row and dropping it.
fn dropping(connection: &Connection) -> Result<f64, Failed> {
    let (realm, agent) = (realm().uuid().into_bytes(), Uuid::now_v7().into_bytes());
    let mut insert = connection.prepare(
        "INSERT INTO feed (realm, number, agent, at_ms, what, seq, count)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let start = Instant::now();
    for number in 0..DROPPED {
        insert.execute(params![realm, number, agent, 1, 2, number, 1])?;
    }
    let took = start.elapsed();
    connection.execute_batch("ROLLBACK")?;
    Ok(took.as_secs_f64() * 1e6 / f64::from(DROPPED))
}

/// Replaces a function by itself without the statement that begins and ends so.
fn cut(url: &str, function: &str, begins: &str, ends: &str) -> Result<(), Failed> {
    let query = format!("SELECT pg_get_functiondef('posse.{function}'::regprocedure)");
    let source = sql(url, &query)?;
    let changed = source.split_once(begins).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(ends)?;
        Some(format!("{before}{after}"))
    });
    sql(url, &changed.ok_or("the feed is written differently now")?)?;
    Ok(())
}
