//! A step: all that one agent does between two waits for the outside world.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use posse_protocol::{
    AgentId, Cost, EntryKind, MemberState, Name, PermissionMode, Purpose, RawJson, RealmId,
    ReplyFacts, RunKind, RunStatus, RunUsage, ToolContent, Usage, WorktreeEnd,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{OpResult, Operation};
use crate::model::Encoded;

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
    /// Background commands that began or ended.
    pub runs: Vec<RunChange>,
    /// The state from now on, if it changes.
    pub state: Option<StateChange>,
    /// What its run came to; with a state that ends it, else the step is refused. Dropped with the state if
    /// mail waits. A change of state without it leaves none of an earlier run.
    pub ended: Option<Box<EndedRun>>,
    /// Who is told when its run ends, from now on: an agent of the realm. None of a run that somebody waits
    /// for.
    pub starter: Option<AgentId>,
    /// The mode from now on, if it changes.
    pub mode: Option<PermissionMode>,
    /// A fingerprint of the types of agents and skills that its model has been told of, if that changes.
    pub types: Option<u64>,
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
            runs: Vec::new(),
            state: None,
            ended: None,
            starter: None,
            mode: None,
            types: None,
            at_ms,
        }
    }
}

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// What came of its operations, in their order.
    pub results: Vec<OpResult>,
    /// It was to come to an end unless mail waits, and mail waits: its state is what it was, and its
    /// operations were not done.
    pub mail_waits: bool,
}

/// A new agent.
#[derive(Clone, Debug)]
pub struct Birth {
    /// Who made it, and what for; none for a root.
    pub origin: Option<Box<Origin>>,
    /// Its path in the tree, `/main` for one.
    pub path: String,
    /// The model's name.
    pub model: String,
    /// Whose spelling its bytes are in; see [`Model::dialect`](crate::model::Model::dialect).
    pub dialect: String,
    /// The mode it starts in.
    pub mode: PermissionMode,
    /// Its working directory.
    pub cwd: PathBuf,
    /// What stays the same for its life. Kept once per realm, by content.
    pub preamble: Encoded,
    /// The histories of others that its own begins with, flattened: each agent's own entries only. They stay
    /// readable whatever becomes of those agents.
    pub segments: Vec<Segment>,
}

/// Where a sub-agent comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The agent that made it, of the same realm.
    pub parent: AgentId,
    /// The call that did.
    pub call: CallKey,
    /// The model's id of that call.
    pub call_id: String,
    /// The type it was started as.
    pub agent_type: String,
    /// The name it is registered under: no two agents of a realm have the same, ever.
    pub name: Option<Name>,
    /// What it is for, in a few words for people.
    pub description: String,
    /// What was agreed when it was started and holds for its life, as JSON; the runtime's own business.
    pub terms: String,
}

/// Entries of one agent (all of the same realm) that another's history begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Whose entries.
    pub agent: AgentId,
    /// The first: 0, or a compaction, whose checksum needs nothing before it. Any other is a bad step.
    pub from: u64,
    /// The one after the last. What is not there yet is a bad step.
    pub to: u64,
}

/// An entry to be added.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Its number among the agent's own entries, from 0.
    pub seq: u64,
    /// What it is.
    pub kind: EntryKind,
    /// How it begins, if its siblings begin with the same bytes: a comma joins it to the piece. Kept once per
    /// realm, by content.
    pub head: Option<Encoded>,
    /// The bytes as sent, after the head.
    pub encoded: Encoded,
    /// Of these bytes and of the agent's own entries before it, back to the last compaction; see
    /// [`checksum`].
    pub checksum: u64,
    /// About a reply.
    pub reply: Option<ReplyFacts>,
}

impl NewEntry {
    /// All its bytes as sent: one message, or several joined by commas.
    pub fn sent(&self) -> Bytes {
        match &self.head {
            Some(head) => Bytes::from([&head.bytes[..], b",", &self.encoded.bytes[..]].concat()),
            None => self.encoded.bytes.clone(),
        }
    }
}

/// Chains an entry to the ones before it: a flipped bit, a lost and a swapped entry are all found. A
/// compaction begins a new chain, since nothing older is read with it.
pub fn checksum<T: AsRef<[u8]> + ?Sized>(
    previous: u64,
    seq: u64,
    kind: EntryKind,
    head: Option<&T>,
    encoded: &T,
) -> u64 {
    // The numbers are part of stored checksums, so that they must never change.
    let (previous, kind) = match kind {
        EntryKind::Prompt => (previous, 1),
        EntryKind::Reply => (previous, 2),
        EntryKind::Results => (previous, 3),
        EntryKind::Compaction => (0, 4),
    };
    let (head, encoded) = (head.map_or(&[][..], |head| head.as_ref()), encoded.as_ref());
    let front = [previous, seq, kind, (head.len() + encoded.len()) as u64].map(u64::to_le_bytes);
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(front.as_flattened());
    hasher.update(head);
    hasher.update(encoded);
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The model that answered, or was asked.
    pub model: String,
    /// What it used.
    pub usage: Usage,
    /// What that cost; none when the price is not known.
    pub cost: Option<Cost>,
    /// What it was made for.
    pub purpose: Purpose,
    /// Tokens of its prompt that had been in the provider's cache and were not found there.
    pub missed: u64,
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
    /// It becomes this, unless mail waits (but for what this step takes) when the step commits: then
    /// state, `ended` and the operations of the step are left out, all the rest is committed, and
    /// [`Committed::mail_waits`] says so. No mail can slip in between.
    UnlessMail(AgentState),
}

/// Something that happened to a background command.
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
        /// The call that began it.
        call: CallKey,
        /// What it is.
        kind: RunKind,
        /// What it does, for people.
        description: String,
        /// Where its output goes.
        output: PathBuf,
    },
    /// It ended. How is told by the mail that the same step sends.
    Ended(RunStatus),
}

/// What an agent is doing, as far as the store must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentState {
    /// Nothing; its last run has ended, and it can be told more.
    Idle,
    /// A run is open. Found in the store of a dead process, it was broken off.
    Running,
    /// A fault or a budget stopped its run, which can be continued.
    Paused,
    /// It is made, and waits for a place to make its first call from.
    Created,
    /// Its run is open, and waits: for runs it has started, for a person, or for a place.
    Waiting,
    /// A sub-agent whose run ended by itself.
    Completed,
    /// A sub-agent whose run a limit stopped.
    Partial,
    /// A sub-agent whose run could not go on.
    Failed,
    /// A sub-agent that was stopped.
    Killed,
}

impl AgentState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Running,
        Self::Paused,
        Self::Created,
        Self::Waiting,
        Self::Completed,
        Self::Partial,
        Self::Failed,
        Self::Killed,
    ];

    /// Whether a run is open in it.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Created | Self::Waiting)
    }

    /// How a sub-agent's run ended that is in it; none if it has not.
    pub fn status(self) -> Option<RunStatus> {
        match self {
            Self::Completed => Some(RunStatus::Completed),
            Self::Partial => Some(RunStatus::Partial),
            Self::Failed => Some(RunStatus::Failed),
            Self::Killed => Some(RunStatus::Killed),
            Self::Paused => Some(RunStatus::Paused),
            Self::Idle | Self::Running | Self::Created | Self::Waiting => None,
        }
    }

    /// How a member of a team stands that is in it.
    pub fn of_member(self) -> MemberState {
        match self {
            Self::Idle => MemberState::Idle,
            Self::Running => MemberState::Running,
            Self::Paused => MemberState::Paused,
            Self::Created => MemberState::Created,
            Self::Waiting => MemberState::Waiting,
            Self::Completed | Self::Partial | Self::Failed | Self::Killed => MemberState::ShutDown,
        }
    }

    /// The word in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Created => "created",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

/// What a run of a sub-agent came to, beside its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRun {
    /// The run; also the id of the mail that tells of it.
    pub run: Uuid,
    /// Why it failed, was paused or cut short.
    pub error: Option<String>,
    /// Whether a person stopped it: then no agent revives it.
    pub by_person: bool,
    /// The newest mail that waited when it was stopped: only later mail brings it back.
    #[serde(default)]
    pub mail: u64,
    /// What it used.
    pub usage: RunUsage,
    /// What it said last, if no mail tells of it: somebody waited for it.
    #[serde(default)]
    pub text: Option<String>,
    /// The same as a value, if a shape was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RawJson>,
    /// What became of the checkout that it had for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeEnd>,
}
