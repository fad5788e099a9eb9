//! A step: all that one agent does between two waits for the outside world.

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::{AgentId, Cost, EntryKind, PermissionMode, RealmId, ReplyFacts, ToolContent, Usage};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{OpResult, Operation};
use crate::port::model::Piece;

/// The name of a step: no two steps of an agent have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepId(pub Uuid);

/// How often an agent has changed hands. Whoever holds the highest one may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// What one agent does between two waits for the outside world.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its id, by which a second try is known.
    pub id: StepId,
    /// The tree the agent belongs to.
    pub realm: RealmId,
    /// The agent.
    pub agent: AgentId,
    /// The writer's epoch. A birth has epoch 1.
    pub epoch: Epoch,
    /// Makes the agent; then the step is its first.
    pub birth: Option<Box<Birth>>,
    /// Entries added to the transcript. Their numbers follow the last one's.
    pub entries: Vec<NewEntry>,
    /// Tool calls that were asked for, begun or answered.
    pub calls: Vec<CallChange>,
    /// Model calls to be paid for.
    pub charges: Vec<Charge>,
    /// Files whose content the agent now knows.
    pub seen: Vec<SeenFile>,
    /// Mail that the entries of this step show to the model.
    pub mail: Vec<TakenMail>,
    /// What it does to others: mail, tasks, teams. Done in their order, after all of the above.
    pub operations: Vec<Operation>,
    /// Questions to a person that were asked or are settled.
    pub asks: Vec<AskChange>,
    /// Background runs that began, ended or were told of.
    pub runs: Vec<RunChange>,
    /// The state from now on, if it changes.
    pub state: Option<StateChange>,
    /// The mode from now on, if it changes.
    pub mode: Option<PermissionMode>,
    /// Wall time, in milliseconds of Unix time.
    pub at_ms: i64,
}

impl Step {
    /// A step that does nothing yet.
    pub fn new(realm: RealmId, agent: AgentId, epoch: Epoch, at_ms: i64) -> Self {
        Self {
            id: StepId(Uuid::now_v7()),
            realm,
            agent,
            epoch,
            birth: None,
            entries: Vec::new(),
            calls: Vec::new(),
            charges: Vec::new(),
            seen: Vec::new(),
            mail: Vec::new(),
            operations: Vec::new(),
            asks: Vec::new(),
            runs: Vec::new(),
            state: None,
            mode: None,
            at_ms,
        }
    }
}

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// What came of its operations, in their order.
    pub results: Vec<OpResult>,
    /// It was to become idle unless mail waits, and mail waits: its state is what it was.
    pub mail_waits: bool,
}

/// A new agent.
#[derive(Clone, Debug)]
pub struct Birth {
    /// The agent that started it; none for a root.
    pub parent: Option<AgentId>,
    /// Its path in the tree, `/main` for one.
    pub path: String,
    /// The model's name.
    pub model: String,
    /// Whose spelling its bytes are in; see [`Model::dialect`](crate::port::model::Model::dialect).
    pub dialect: String,
    /// The mode it starts in.
    pub mode: PermissionMode,
    /// Its working directory.
    pub cwd: PathBuf,
    /// What stays the same for its life. Kept once per realm, by content.
    pub preamble: Piece,
    /// The histories of others that its own begins with, flattened: each agent's own entries only.
    pub segments: Vec<Segment>,
}

/// Entries of one agent (all of the same realm) that another's history begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Whose entries.
    pub agent: AgentId,
    /// The first.
    pub from: u64,
    /// The one after the last.
    pub to: u64,
}

/// An entry to be added.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Its number among the agent's own entries, from 0.
    pub seq: u64,
    /// What it is.
    pub kind: EntryKind,
    /// The bytes as sent.
    pub piece: Piece,
    /// Of these bytes and of all the agent's own entries before it; see [`checksum`].
    pub checksum: u64,
    /// About a reply.
    pub reply: Option<ReplyFacts>,
}

/// Chains an entry to the ones before it: a flipped bit, a lost and a swapped entry are all found.
pub fn checksum(previous: u64, seq: u64, kind: EntryKind, bytes: &[u8]) -> u64 {
    let kind = match kind {
        EntryKind::Prompt => 1,
        EntryKind::Reply => 2,
        EntryKind::Results => 3,
    };
    let head = [previous, seq, kind, bytes.len() as u64].map(u64::to_le_bytes);
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(head.as_flattened());
    hasher.update(bytes);
    hasher.digest()
}

/// A tool call, named by the entry that asked for it and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// The reply's number.
    pub seq: u64,
    /// Which of its calls, from 0.
    pub ordinal: u32,
}

/// What happened to a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallChange {
    /// The call.
    pub key: CallKey,
    /// What happened.
    pub change: CallChangeKind,
}

/// What can happen to a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallChangeKind {
    /// The model asked for it.
    Asked {
        /// The model's id of it.
        id: String,
        /// The tool's name.
        tool: String,
    },
    /// Its effects may have begun.
    Begun,
    /// It has an outcome.
    Done(CallOutcome),
}

/// What a tool call came to: what the model is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// The answer.
    pub content: Arc<[ToolContent]>,
    /// Whether it failed.
    pub is_error: bool,
}

/// A model call to be paid for.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// The model that answered, or was asked.
    pub model: String,
    /// What it used.
    pub usage: Usage,
    /// What that cost; none when the price is not known.
    pub cost: Option<Cost>,
}

/// A file whose content an agent knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// Its resolved path.
    pub path: PathBuf,
    /// A hash of its content.
    pub version: u64,
}

/// Mail that is shown to the model from now on, and never again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenMail {
    /// Its number in the agent's inbox. It waits: mail that was taken before is a bad step.
    pub number: u64,
    /// The entry that shows it; one of this step.
    pub entry: u64,
}

/// What becomes of an agent's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// It becomes this.
    To(AgentState),
    /// It becomes idle, unless mail waits when the step commits: then it stays what it was, and
    /// [`Committed::mail_waits`] says so. No mail can slip in between.
    IdleUnlessMail,
}

/// A question to a person that was asked, or is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskChange {
    /// The question.
    pub id: Uuid,
    /// What happened.
    pub change: AskChangeKind,
}

/// What can happen to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskChangeKind {
    /// It was asked.
    Asked {
        /// What it is about.
        kind: AskKind,
        /// The rest of it, as JSON.
        about: String,
    },
    /// It was answered, or is not asked any more.
    Settled,
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskKind {
    /// Whether a tool call may run.
    Permission,
    /// Whether a plan is good.
    Plan,
    /// Whether a teammate may be ended.
    Shutdown,
}

/// Something that happened to a background run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChange {
    /// The run.
    pub id: Uuid,
    /// What happened.
    pub change: RunChangeKind,
}

/// What can happen to a background run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunChangeKind {
    /// It began.
    Began {
        /// What it is: `bash`, `agent`, …
        kind: String,
        /// What it does, for people.
        description: String,
        /// Where its output goes.
        output: PathBuf,
    },
    /// It ended.
    Ended(RunState),
    /// The model was told, by this entry of this step. Each end is told once.
    Told {
        /// The entry.
        entry: u64,
    },
}

/// How far a background run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It runs.
    Running,
    /// It ended by itself.
    Completed,
    /// A limit stopped it.
    Partial,
    /// It failed.
    Failed,
    /// Somebody stopped it.
    Killed,
}

/// What an agent is doing, as far as the store must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// Nothing; its last run has ended.
    Idle,
    /// A run is open. Found in the store of a dead process, it was broken off.
    Running,
    /// A fault stopped its run, which can be continued.
    Paused,
}
