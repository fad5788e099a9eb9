//! posse's side: the runtime on a real store.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use posse_model::RetryPolicy;
use posse_port::clock::SystemClock;
use posse_port::model::{Encoded, Model};
use posse_port::store::{AgentState, Birth, Charge, Epoch, NewEntry, StateChange, Step, Store};
use posse_port::tool::{Toolbox, Workspace};
use posse_protocol::{
    AgentId, Command, ContentBlock, EntryKind, EventKind, Outcome, PermissionMode, RealmId,
};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::AgentProfile;
use posse_runtime::runtime::Runtime;
use posse_store::Sqlite;
use posse_testkit::{rig, scripted};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bare::{ENTRY, FACTS, USAGE};
use crate::{Failed, cpu_ms};

pub(crate) const SYSTEM: &str = "You answer in a sentence. ";

pub(crate) fn runtime(model: Arc<dyn Model>, directory: &Path) -> Result<Runtime, Failed> {
    let store = Arc::new(Sqlite::open(&directory.join("posse.db"))?);
    let worktrees = directory.join("worktrees");
    Ok(Runtime::new(rig::ports(model, store, worktrees)?))
}

pub(crate) fn start(runtime: &Runtime, directory: &Path) -> Agent {
    let directory = directory.to_owned();
    let workspace = Workspace::new(directory.clone(), directory);
    let profile = AgentProfile::new("claude-opus-5", SYSTEM.repeat(100));
    runtime.start(&profile, rig::setup(Toolbox::default(), workspace))
}

/// Sends the agent a prompt and waits for the end of its run.
pub(crate) async fn turn(agent: &mut Agent, text: String) -> Result<(), Failed> {
    agent
        .handle
        .send(Command::Prompt(vec![ContentBlock::text(text)]))
        .await?;
    while let Some(event) = agent.events.recv().await {
        if let EventKind::Ended(end) = event.kind {
            return match end.outcome {
                Outcome::Completed => Ok(()),
                other => Err(format!("{other:?}").into()),
            };
        }
    }
    Err("the agent ended".into())
}

fn model(url: &str) -> Result<Arc<dyn Model>, Failed> {
    Ok(Arc::new(scripted::anthropic(
        url,
        Arc::new(SystemClock::default()),
        RetryPolicy::default(),
    )?))
}

pub(crate) async fn turns(url: &str, directory: &Path, turns: u32) -> Result<Value, Failed> {
    let runtime = runtime(model(url)?, directory)?;
    turn(&mut start(&runtime, directory), "warm up".into()).await?;
    let mut agent = start(&runtime, directory);
    let before = cpu_ms()?;
    for number in 0..turns {
        turn(&mut agent, format!("prompt {number}")).await?;
    }
    Ok(json!({"cpu_ms": cpu_ms()? - before}))
}

/// Returns the peak memory of this process so far, in kilobytes.
pub(crate) fn memory_kb() -> Result<f64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

pub(crate) async fn agents(
    url: &str,
    directory: &Path,
    agents: u32,
    turns: u32,
) -> Result<Value, Failed> {
    let runtime = runtime(model(url)?, directory)?;
    turn(&mut start(&runtime, directory), "warm up".into()).await?;
    let (cpu, memory, clock) = (cpu_ms()?, memory_kb()?, Instant::now());
    let mut running = JoinSet::new();
    for _ in 0..agents {
        let mut agent = start(&runtime, directory);
        running.spawn(async move {
            for number in 0..turns {
                turn(&mut agent, format!("prompt {number}")).await?;
            }
            Ok::<_, Failed>(agent)
        });
    }
    let mut alive = Vec::new();
    while let Some(done) = running.join_next().await {
        alive.push(done??);
    }
    let (count, idle) = (f64::from(agents), memory_kb()?);
    Ok(json!({
        "completed": alive.len(),
        "wall_s": clock.elapsed().as_secs_f64(),
        "cpu_ms_per_turn": (cpu_ms()? - cpu) / count / f64::from(turns),
        "kb_per_idle_agent": (idle - memory) / count,
    }))
}

/// The steps of a turn: a prompt, and the reply that ends it.
pub(crate) fn step(id: AgentId, turn: u64, reply: bool) -> Step {
    let seq = 2 * turn + u64::from(reply);
    let encoded = Encoded {
        bytes: bytes::Bytes::from_static(ENTRY.as_bytes()),
        mark_at: Some(ENTRY.len() - 3),
    };
    let birth = Birth {
        origin: None,
        path: "/main".into(),
        model: "claude-opus-5".into(),
        dialect: "anthropic".into(),
        mode: PermissionMode::Default,
        cwd: "/work".into(),
        preamble: encoded.clone(),
        segments: Vec::new(),
    };
    Step {
        birth: (seq == 0).then(|| Box::new(birth)),
        entries: vec![NewEntry {
            seq,
            kind: if reply {
                EntryKind::Reply
            } else {
                EntryKind::Prompt
            },
            head: None,
            loaded: None,
            encoded,
            checksum: seq,
            reply: reply.then(|| FACTS.clone()),
        }],
        charges: if reply {
            vec![Charge {
                model: "claude-opus-5".into(),
                usage: USAGE,
                cost: None,
                purpose: posse_protocol::Purpose::Work,
                missed: 0,
            }]
        } else {
            Vec::new()
        },
        state: Some(StateChange::To(if reply {
            AgentState::Idle
        } else {
            AgentState::Running
        })),
        ..Step::new(
            RealmId::from(id.uuid()),
            id,
            Epoch(1),
            1_794_700_800_000 + seq as i64,
        )
    }
}

pub(crate) async fn steps(directory: &Path, agents: u32, batches: u64) -> Result<Value, Failed> {
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(&directory.join("posse.db"))?);
    let ids: Vec<AgentId> = (0..agents)
        .map(|_| AgentId::from(uuid::Uuid::now_v7()))
        .collect();
    for id in &ids {
        store.commit(step(*id, 0, false)).await?;
    }
    let start = Instant::now();
    let mut running = JoinSet::new();
    for id in ids {
        let store = Arc::clone(&store);
        running.spawn(async move {
            for number in 1..=batches {
                store.commit(step(id, number / 2, number % 2 == 1)).await?;
            }
            Ok::<_, Failed>(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let steps = u64::from(agents) * batches;
    Ok(json!({"per_s": steps as f64 / start.elapsed().as_secs_f64()}))
}
