//! A host is killed; another is told, and takes its agents.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::store::{Store, Wake};
use posse_protocol::{AgentId, RealmId};
use posse_store::Postgres;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use crate::place::Place;
use crate::words::{Realms, born, raised};
use crate::{Failed, say};

/// Time after the lease at which a missing wake counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Holds agents until it is killed.
pub(crate) async fn hold(url: &str, agents: usize) -> Result<(), Failed> {
    let store = Arc::new(Postgres::open(url)?);
    for agent in raised(&store, agents, Realms::Each).await? {
        say(&agent.id.to_string())?;
    }
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

pub(crate) async fn run(place: &Place, agents: usize, lease_ms: u64) -> Result<Value, Failed> {
    let url = format!("{}?posse_lease={lease_ms}ms", place.url);
    let store = Arc::new(Postgres::open(&url)?);
    // It holds an agent itself, so that it listens.
    born(&store, RealmId::from(Uuid::now_v7())).await?;
    let (mut holder, held) = holder(&url, agents)?;
    holder.kill()?;
    let killed = Instant::now();
    let told = async {
        while !store
            .woken()
            .await?
            .iter()
            .any(|wake| matches!(wake, Wake::Died(_)))
        {}
        Ok::<_, Failed>(())
    };
    timeout(Duration::from_millis(lease_ms) + PATIENCE, told)
        .await
        .map_err(|_| "nobody was told")??;
    let told = killed.elapsed();
    let mut takes = JoinSet::new();
    for agent in held {
        let store = Arc::clone(&store);
        takes.spawn(async move { store.take(agent).await.map(drop) });
    }
    while let Some(taken) = takes.join_next().await {
        taken??;
    }
    let taken = killed.elapsed();
    holder.wait()?;
    let seconds = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
    Ok(
        json!({"agents": agents, "lease_s": lease_ms as f64 / 1e3, "told_s": seconds(told), "taken_s": seconds(taken)}),
    )
}

/// Starts a process that holds agents, and returns their ids.
#[expect(clippy::disallowed_methods, reason = "it measures processes")]
fn holder(url: &str, agents: usize) -> Result<(std::process::Child, Vec<AgentId>), Failed> {
    let mut holder = Command::new(std::env::current_exe()?)
        .args(["hold", &agents.to_string(), url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(holder.stdout.take().ok_or("no output")?).lines();
    let held = lines
        .take(agents)
        .map(|line| Ok(line?.parse()?))
        .collect::<Result<Vec<AgentId>, Failed>>()?;
    Ok((holder, held))
}
