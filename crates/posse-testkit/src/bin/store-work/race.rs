//! Agents of several processes that claim from one list.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use posse_port::store::{Done, Refusal, Store};
use posse_protocol::AgentId;
use posse_store::Sqlite;
use posse_testkit::place::Place;
use serde_json::json;
use tokio::task::JoinSet;

use crate::words::{add_tasks, claim, doing, newborn};
use crate::{Failed, say};

/// Makes N claimable tasks.
pub(crate) async fn tasks(place: &Place, count: u64) -> Result<(), Failed> {
    add_tasks(&*place.open()?, None, count).await
}

/// Claims all it can with several agents, writes the numbers to `into`, and stays until its input
/// ends, because its tasks become free when it ends.
pub(crate) async fn claims(place: &Place, into: &Path, agents: u64) -> Result<(), Failed> {
    // Only processes that share a file wait for each other's turn.
    let file = place
        .file()
        .ok()
        .map(Sqlite::open)
        .transpose()?
        .map(Arc::new);
    let store = match &file {
        Some(file) => Arc::clone(file) as Arc<dyn Store>,
        None => place.open()?,
    };
    let mut claimers = Vec::new();
    for _ in 0..agents {
        claimers.push(newborn(&*store).await?);
    }
    say("ready")?;
    await_line()?;
    let mut running = JoinSet::new();
    for agent in claimers {
        running.spawn(claimer(Arc::clone(&store), agent));
    }
    let mut claimed = Vec::new();
    while let Some(claims) = running.join_next().await {
        claimed.extend(claims??);
    }
    let bytes: Vec<u8> = claimed.iter().flat_map(|id| id.to_le_bytes()).collect();
    std::fs::write(into, bytes)?;
    let longest = file.map(|file| file.longest_wait().as_secs_f64() * 1e3);
    say(&json!({"claims": claimed.len(), "longest_wait_ms": longest}).to_string())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

async fn claimer(store: Arc<dyn Store>, agent: AgentId) -> Result<Vec<u64>, Failed> {
    let mut claimed = Vec::new();
    loop {
        match store
            .commit(doing(agent, claim(None)))
            .await?
            .results
            .remove(0)
        {
            Ok(Done::Claimed(task)) => claimed.push(task.id.0),
            Err(Refusal::NothingToClaim) => return Ok(claimed),
            other => return Err(format!("{other:?}").into()),
        }
    }
}

fn await_line() -> io::Result<()> {
    io::stdin().read_line(&mut String::new()).map(drop)
}
