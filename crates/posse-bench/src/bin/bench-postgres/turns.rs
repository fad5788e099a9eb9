//! Throughput of whole turns: a reply with a call, its results, and a message to a teammate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::store::{Address, AgentState, Op, Operation, StateChange, Step, Store};
use posse_protocol::{AgentId, EntryKind, MailId, MailKind};
use posse_store::Postgres;
use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::Failed;
use crate::meter::Meter;
use crate::place::Place;
use crate::words::{Agent, Realms, born, raised};

pub(crate) async fn run(place: &Place, agents: usize, time: Duration) -> Result<Value, Failed> {
    let store = Arc::new(Postgres::open(&place.url)?);
    let mut pairs = Vec::new();
    for agent in raised(&store, agents, Realms::Each).await? {
        let peer = born(&store, agent.realm).await?.id;
        pairs.push((agent, peer));
    }
    let meter = Meter::begin(place.server()).await?;
    let end = Instant::now() + time;
    let mut running = JoinSet::new();
    for (mut agent, peer) in pairs {
        let store = Arc::clone(&store);
        running.spawn(async move {
            let mut turns = 0;
            while Instant::now() < end {
                turn(&store, &mut agent, peer).await?;
                turns += 1;
            }
            Ok::<u64, Failed>(turns)
        });
    }
    let mut turns = 0;
    while let Some(done) = running.join_next().await {
        turns += done??;
    }
    meter.end(turns).await
}

async fn turn(store: &Postgres, agent: &mut Agent, peer: AgentId) -> Result<(), Failed> {
    let state = |state| Some(StateChange::To(state));
    store
        .commit(Step {
            state: state(AgentState::Running),
            ..agent.reply()
        })
        .await?;
    let op = Op::Send {
        id: MailId::from(Uuid::now_v7()),
        to: Address::Agent(peer),
        kind: MailKind::Text,
        summary: "a word".into(),
        body: "The second test passes now; the third waits for what you change in the writer."
            .into(),
    };
    let blank = agent.blank();
    let results = Step {
        entries: vec![agent.entry(EntryKind::Results)],
        operations: vec![Operation { call: None, op }],
        state: state(AgentState::Idle),
        ..blank
    };
    for result in store.commit(results).await?.results {
        result?;
    }
    Ok(())
}
