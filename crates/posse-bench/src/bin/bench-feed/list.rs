//! The processor time of a list of agents of which some have changed.

use std::collections::HashMap;

use posse_port::store::{Page, RowFilter};
use posse_testkit::place::Place;
use posse_testkit::store_contract::realm;
use serde_json::{Value, json};

use crate::Failed;
use crate::words::Agent;

/// Agents in the list, and those of them that change between two looks.
const AGENTS: usize = 1000;
const CHANGED: usize = 10;
/// Steps of each agent before the list is read.
const STEPS: usize = 4;

/// Reads the list once, and then what has changed, `rounds` times. Returns the milliseconds of the
/// first and the median of the others.
pub(crate) async fn run(place: &Place, rounds: usize) -> Result<Value, Failed> {
    let store = place.open()?;
    let mut agents = Vec::with_capacity(AGENTS);
    for _ in 0..AGENTS {
        let mut agent = Agent::born(&*store).await?;
        for _ in 0..STEPS {
            store.commit(agent.step()).await?;
        }
        agents.push(agent);
    }
    let before = cpu_ms();
    let all = store
        .rows(realm(), RowFilter::Page(Page::first(AGENTS)))
        .await?;
    let first = cpu_ms() - before;
    let mut number = all.number;
    let mut list: HashMap<_, _> = all.rows.into_iter().map(|row| (row.agent, row)).collect();
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        for nth in 0..CHANGED {
            let agent = &mut agents[(round * CHANGED + nth) % AGENTS];
            store.commit(agent.step()).await?;
        }
        let before = cpu_ms();
        let feed = store.feed(realm(), number, 1000).await?;
        let changed = RowFilter::Agents(feed.agents());
        let rows = store.rows(realm(), changed).await?.rows;
        number = feed.head;
        if rows.len() != CHANGED {
            return Err(format!("{} rows have changed", rows.len()).into());
        }
        list.extend(rows.into_iter().map(|row| (row.agent, row)));
        times.push(cpu_ms() - before);
    }
    if list.len() != AGENTS {
        return Err(format!("{} agents are listed", list.len()).into());
    }
    times.sort_by(f64::total_cmp);
    Ok(json!({"first_cpu_ms": first, "changed_cpu_ms": times[times.len() / 2]}))
}

/// Returns the processor time of this process.
fn cpu_ms() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}
