//! A session that is written into the store of a home by the store's own means.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use posse_port::model::Encoded;
use posse_port::store::{
    AgentState, Birth, CallKey, Charge, Epoch, NewEntry, Origin, StateChange, Step, Store,
};
use posse_protocol::{
    AgentId, Cost, EntryKind, PermissionMode, Purpose, RealmId, ReplyFacts, StopReason, Usage,
};
use posse_store::Sqlite;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::Failed;

/// Number of sub-agents that an agent has started.
const CHILDREN: usize = 8;
/// Number of steps that are written at once.
const AT_ONCE: usize = 250;
/// What a step of an agent costs.
pub(crate) const CENTS: u64 = 1;
const MODEL: &str = "claude-opus-5";
const USAGE: Usage = Usage {
    input: 12,
    cache_read: 3400,
    cache_write_5m: 80,
    cache_write_1h: 0,
    output: 77,
    thinking: 0,
};

/// A session whose agents this process holds: they are at work.
pub(crate) struct StoredSession {
    store: Arc<dyn Store>,
    runtime: Runtime,
    realm: RealmId,
    agents: Vec<StoredAgent>,
}

/// An agent, and the number of its next entry.
#[derive(Clone, Copy)]
struct StoredAgent {
    id: AgentId,
    seq: u64,
}

impl StoredSession {
    /// Creates a session of `count` agents. Each has said something; the first is the main agent.
    pub(crate) fn create(place: &Path, count: usize) -> Result<Self, Failed> {
        let home = place.join("home/.posse");
        std::fs::create_dir_all(&home)?;
        std::fs::create_dir_all(place.join("work"))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let _context = runtime.enter();
        let store: Arc<dyn Store> = Arc::new(Sqlite::open(&home.join("posse.db"))?);
        let realm = RealmId::from(Uuid::now_v7());
        let id = |_| AgentId::within(realm, Uuid::now_v7());
        let agents: Vec<AgentId> = (0..count).map(id).collect();
        let mut this = Self {
            store,
            runtime,
            realm,
            agents: agents
                .iter()
                .map(|id| StoredAgent { id: *id, seq: 0 })
                .collect(),
        };
        let work = place.join("work").canonicalize()?;
        let mut steps = Vec::with_capacity(count);
        for number in 0..count {
            let parent = number
                .checked_sub(1)
                .map(|number| agents[number / CHILDREN]);
            let mut step = this.next(number, &["Look at the parser, and mend what is broken."])?;
            step.birth = Some(Box::new(birth(number, parent, &work)?));
            step.state = Some(StateChange::To(AgentState::Running));
            steps.push(step);
        }
        this.commit(steps)?;
        Ok(this)
    }

    /// Each of these agents says something and pays for it.
    pub(crate) fn change(&mut self, agents: impl Iterator<Item = usize>) -> Result<(), Failed> {
        let steps = agents.map(|number| {
            let number = number % self.agents.len();
            self.next(number, &["The second test passes now."])
        });
        let steps = steps.collect::<Result<_, _>>()?;
        self.commit(steps)
    }

    /// The main agent says all of this, an entry each.
    pub(crate) fn say(&mut self, texts: &[String]) -> Result<(), Failed> {
        for texts in texts.chunks(AT_ONCE) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let step = self.next(0, &texts)?;
            self.commit(vec![step])?;
        }
        Ok(())
    }

    /// Returns the next step of an agent, in which it says these texts.
    fn next(&mut self, number: usize, texts: &[&str]) -> Result<Step, Failed> {
        let now = SystemTime::UNIX_EPOCH.elapsed()?.as_millis();
        let agent = &mut self.agents[number];
        let mut step = Step::new(self.realm, agent.id, Epoch(1), i64::try_from(now)?);
        for text in texts {
            step.entries.push(entry(agent.seq, text));
            agent.seq += 1;
        }
        step.charges = vec![Charge {
            model: MODEL.into(),
            usage: USAGE,
            cost: Some(Cost::from_pico_usd(CENTS * 10_000_000_000)),
            purpose: Purpose::Work,
            missed: 0,
        }];
        Ok(step)
    }

    /// Writes steps, as many at once as the store takes.
    fn commit(&self, steps: Vec<Step>) -> Result<(), Failed> {
        self.runtime.block_on(async {
            let mut steps = steps.into_iter().peekable();
            while steps.peek().is_some() {
                let mut writing = JoinSet::new();
                for step in steps.by_ref().take(AT_ONCE) {
                    let store = Arc::clone(&self.store);
                    writing.spawn(async move { store.commit(step).await });
                }
                while let Some(written) = writing.join_next().await {
                    written??;
                }
            }
            Ok(())
        })
    }
}

/// Returns how an agent is born.
fn birth(number: usize, parent: Option<AgentId>, work: &Path) -> Result<Birth, Failed> {
    let origin = match parent {
        None => None,
        Some(parent) => Some(Box::new(Origin {
            parent,
            call: CallKey { seq: 0, ordinal: 0 },
            call_id: format!("toolu_{number}"),
            agent_type: "general-purpose".into(),
            name: Some(format!("agent-{number:04}").parse()?),
            description: format!("mend part {number} of the parser"),
            terms: "{}".into(),
        })),
    };
    Ok(Birth {
        path: match &origin {
            None => "/main".into(),
            Some(_) => format!("/main/{number}"),
        },
        origin,
        model: MODEL.into(),
        dialect: "anthropic".into(),
        mode: PermissionMode::Default,
        cwd: work.to_owned(),
        preamble: Encoded {
            bytes: r#""system":"hello""#.into(),
            mark_at: None,
        },
        segments: Vec::new(),
    })
}

/// Returns an entry: the first of an agent is its prompt, the others are replies.
fn entry(seq: u64, text: &str) -> NewEntry {
    let (kind, role) = match seq {
        0 => (EntryKind::Prompt, "user"),
        _ => (EntryKind::Reply, "assistant"),
    };
    let message = json!({"role": role, "content": [{"type": "text", "text": text}]});
    let facts = || ReplyFacts {
        id: format!("msg_{seq}"),
        model: MODEL.into(),
        stop: Some(StopReason::EndTurn),
        usage: USAGE,
        missed: None,
    };
    NewEntry {
        seq,
        kind,
        head: None,
        loaded: None,
        encoded: Encoded {
            bytes: Bytes::from(message.to_string()),
            mark_at: None,
        },
        // Nobody continues this session, so nobody compares it.
        checksum: seq,
        reply: (kind == EntryKind::Reply).then(facts),
    }
}
