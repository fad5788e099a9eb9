//! Agents that write until they are killed, and say what was acknowledged.

use std::sync::Arc;

use posse_port::store::{Epoch, Step, Store};
use posse_protocol::{AgentId, EntryKind};
use posse_testkit::place::Place;
use posse_testkit::store_contract::{entry, realm};
use tokio::task::JoinSet;

use crate::words::newborn;
use crate::{Failed, say};

/// Writes steps of several agents, one entry each. Prints the agent and the number of each entry
/// when it is acknowledged.
pub(crate) async fn write(place: &Place, agents: u64) -> Result<(), Failed> {
    let store = place.open()?;
    let mut writing = JoinSet::new();
    for _ in 0..agents {
        let agent = newborn(&*store).await?;
        writing.spawn(steps(Arc::clone(&store), agent));
    }
    while let Some(done) = writing.join_next().await {
        done??;
    }
    Ok(())
}

async fn steps(store: Arc<dyn Store>, agent: AgentId) -> Result<(), Failed> {
    for seq in 0.. {
        let step = Step {
            entries: vec![entry(seq, EntryKind::Prompt, "a word")],
            ..Step::new(realm(), agent, Epoch(1), 10)
        };
        store.commit(step).await?;
        say(&format!("{agent} {seq}"))?;
    }
    Ok(())
}
