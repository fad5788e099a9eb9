//! Readers that follow while several processes write one realm: what they missed, and what they saw
//! twice.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use posse_port::store::{FeedRow, Store, Topics};
use posse_protocol::AgentId;
use posse_testkit::place::Place;
use posse_testkit::store_contract::realm;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::words::Agent;
use crate::{Failed, say};

const WRITERS: usize = 4;
/// Agents of each writer.
const AGENTS: usize = 16;
const READERS: usize = 8;
/// Time for one page; the sweep finds what no hint reported long before.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest page. A small one, so that readers are behind at times.
const PAGE: usize = 50;

/// Writes `steps` steps of each agent. Prints the agents when all is acknowledged.
pub(crate) async fn write(place: &Place, steps: u64) -> Result<(), Failed> {
    let store = place.open()?;
    let mut writing = JoinSet::new();
    for _ in 0..AGENTS {
        let (mut agent, store) = (Agent::born(&*store).await?, Arc::clone(&store));
        writing.spawn(async move {
            while agent.seq < steps {
                store.commit(agent.step()).await?;
            }
            Ok::<_, Failed>(agent.id)
        });
    }
    while let Some(done) = writing.join_next().await {
        say(&done??.to_string())?;
    }
    Ok(())
}

pub(crate) async fn run(place: &Place, steps: u64) -> Result<Value, Failed> {
    let store = place.open()?;
    // Its entry is the last row that readers wait for.
    let mut last = Agent::born(&*store).await?;
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        readers.spawn(follow(place.open()?, last.id));
    }
    let writers = (0..WRITERS)
        .map(|_| writer(place, steps))
        .collect::<Result<Vec<_>, _>>()?;
    let written = tokio::task::spawn_blocking(move || finish(writers)).await??;
    store.commit(last.step()).await?;
    let head = store.feed(realm(), 0, 0).await?.head;
    let (mut lost, mut doubled) = (0, 0);
    while let Some(rows) = readers.join_next().await {
        let faults = Faults::of(&rows??, &written, steps, head);
        lost += faults.lost;
        doubled += faults.doubled;
    }
    Ok(json!({"rows": head, "readers": READERS, "lost": lost, "doubled": doubled}))
}

#[expect(clippy::disallowed_methods, reason = "it measures processes")]
fn writer(place: &Place, steps: u64) -> Result<Child, Failed> {
    Ok(Command::new(std::env::current_exe()?)
        .args(["write", &steps.to_string()])
        .arg(place)
        .stdout(Stdio::piped())
        .spawn()?)
}

/// Waits for writers, and returns their agents.
fn finish(writers: Vec<Child>) -> Result<Vec<AgentId>, Failed> {
    let mut agents = Vec::new();
    for writer in writers {
        let output = writer.wait_with_output()?;
        if !output.status.success() {
            return Err("a writer failed".into());
        }
        for line in String::from_utf8(output.stdout)?.lines() {
            agents.push(line.parse()?);
        }
    }
    Ok(agents)
}

/// Reads from the beginning until the entry of `last`, or until nothing comes any more.
async fn follow(store: Arc<dyn Store>, last: AgentId) -> Result<Vec<FeedRow>, Failed> {
    let mut rows: Vec<FeedRow> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |row| row.number);
        let Ok(page) = timeout(PATIENCE, store.follow_feed(realm(), after, PAGE)).await else {
            return Ok(rows);
        };
        rows.extend(page?.rows);
        let ends = |row: &FeedRow| row.agent == Some(last) && row.topics.contains(Topics::ENTRIES);
        if rows.iter().rev().take(PAGE).any(ends) {
            return Ok(rows);
        }
    }
}

/// What is wrong with the rows of a reader.
struct Faults {
    lost: u64,
    doubled: u64,
}

impl Faults {
    /// Compares them with the numbers up to `head`, and with the entries that were acknowledged.
    fn of(rows: &[FeedRow], written: &[AgentId], steps: u64, head: u64) -> Self {
        let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
        let mut entries: BTreeMap<(AgentId, u64), u64> = BTreeMap::new();
        for row in rows {
            *numbers.entry(row.number).or_default() += 1;
            if let (Some(agent), true) = (row.agent, row.topics.contains(Topics::ENTRIES)) {
                for seq in row.seq..row.seq + row.count {
                    *entries.entry((agent, seq)).or_default() += 1;
                }
            }
        }
        let lost_numbers = (1..=head).filter(|n| !numbers.contains_key(n)).count();
        let lost_entries = written
            .iter()
            .flat_map(|agent| (0..steps).map(|seq| (*agent, seq)))
            .filter(|entry| !entries.contains_key(entry))
            .count();
        let again = |count: &u64| count - 1;
        let doubled_numbers: u64 = numbers.values().map(again).sum();
        let doubled_entries: u64 = entries.values().map(again).sum();
        Self {
            lost: lost_numbers.max(lost_entries) as u64,
            doubled: doubled_numbers.max(doubled_entries),
        }
    }
}
