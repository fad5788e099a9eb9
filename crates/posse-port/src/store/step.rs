//! A step: everything that one agent does between two waits for the outside world.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use posse_protocol::{
    AgentId, Cost, EntryKind, MemberState, Name, PermissionMode, Purpose, RawJson, RealmId,
    ReplyFacts, RunKind, RunStatus, RunUsage, ToolContent, Usage, WorktreeEnd,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{CallKey, Op, OpResult, Operation, QuestionChange};
use crate::confinement::Tier;
use crate::model::Encoded;

/// The id of a step, unique among the steps of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepId(pub Uuid);

/// Number of times an agent has changed hands. Only the holder of the highest may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// Everything one agent does between two waits for the outside world.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its id, by which a retry is recognised.
    pub id: StepId,
    /// The agent's realm.
    pub realm: RealmId,
    /// The agent.
    pub agent: AgentId,
    /// The writer's epoch. A birth has epoch 1.
    pub epoch: Epoch,
    /// Creates the agent, if this is its first step.
    pub birth: Option<Box<Birth>>,
    /// Entries added to the transcript, numbered on from the last one.
    pub entries: Vec<NewEntry>,
    /// Tool calls that were requested, begun or answered.
    pub calls: Vec<CallChange>,
    /// Model calls to be paid for.
    pub charges: Vec<Charge>,
    /// The worst case of the model call that this step leads to, for the purpose
    /// [`InFlight`](Purpose::InFlight). Stored with its last entry; a step without entries stores
    /// none. See [`AgentRecord::reserved`](super::AgentRecord::reserved).
    pub reserved: Option<Box<Charge>>,
    /// Files whose content the agent now knows.
    pub seen: Vec<SeenFile>,
    /// Mail that the entries of this step show to the model.
    pub mail: Vec<TakenMail>,
    /// Operations on mail, tasks and teams. Performed in order, after everything above.
    pub operations: Vec<Operation>,
    /// Background commands that began or ended.
    pub runs: Vec<RunChange>,
    /// Questions to a person that were asked, or that need no answer any more.
    pub questions: Vec<QuestionChange>,
    /// The new state, if it changes.
    pub state: Option<StateChange>,
    /// Result of its run; only with a state that ends the run, else the step is refused. Dropped
    /// with the state if mail waits. A state change without it clears the result of an earlier run.
    pub ended: Option<Box<EndedRun>>,
    /// Agent of the realm that is notified when its run ends, if it changes. Not set for a run that
    /// somebody waits for.
    pub starter: Option<AgentId>,
    /// The new mode, if it changes.
    pub mode: Option<PermissionMode>,
    /// A fingerprint of the agent types and skills that its model has been told of, if it changes.
    pub types: Option<u64>,
    /// Wall time, in milliseconds of Unix time.
    pub at_ms: i64,
}

impl Step {
    /// Returns why no agent can be born by this step: its id must end like that of its realm, so that
    /// it can be found by its id alone.
    pub fn misplaced(&self) -> Option<String> {
        let is_misplaced = self.birth.is_some() && self.agent.bucket() != self.realm.bucket();
        is_misplaced.then(|| {
            format!(
                "the id {} does not end like that of its realm {}",
                self.agent, self.realm
            )
        })
    }

    /// Returns why it is no step of an agent: some operations are only for people.
    pub fn oversteps(&self) -> Option<&'static str> {
        let mut reasons = self.operations.iter().map(|operation| match operation.op {
            Op::Charge { .. } => Some("what an agent spends is among its step's charges"),
            Op::Answer { .. } => Some("no agent answers a question to a person"),
            _ => None,
        });
        reasons.find_map(|reason| reason)
    }

    /// Creates a step that does nothing yet.
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
            reserved: None,
            seen: Vec::new(),
            mail: Vec::new(),
            operations: Vec::new(),
            runs: Vec::new(),
            questions: Vec::new(),
            state: None,
            ended: None,
            starter: None,
            mode: None,
            types: None,
            at_ms,
        }
    }
}

/// Result of a committed step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// Results of its operations, in order.
    pub results: Vec<OpResult>,
    /// True if the state was to change only without waiting mail, and mail waits: the state is
    /// unchanged, and the operations were not performed.
    pub mail_waits: bool,
}

/// A new agent.
#[derive(Clone, Debug)]
pub struct Birth {
    /// Its maker and purpose; `None` for a root.
    pub origin: Option<Box<Origin>>,
    /// Its path in the tree, for example `/main`.
    pub path: String,
    /// The model's name.
    pub model: String,
    /// The encoding of its bytes; see [`Model::dialect`](crate::model::Model::dialect).
    pub dialect: String,
    /// The mode it starts in.
    pub mode: PermissionMode,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The part of its requests that stays the same for its life. Stored once per realm, by
    /// content.
    pub preamble: Encoded,
    /// The histories of others that its own begins with, flattened: each agent's own entries only.
    /// They stay readable even if those agents end.
    pub segments: Vec<Segment>,
}

/// Origin of a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The agent that made it, of the same realm.
    pub parent: AgentId,
    /// The call that made it.
    pub call: CallKey,
    /// The model's id of that call.
    pub call_id: String,
    /// Its agent type.
    pub agent_type: String,
    /// Its registered name; never reused within the realm.
    pub name: Option<Name>,
    /// Its purpose in a few words, for people.
    pub description: String,
    /// The terms agreed at its start, which hold for its life, as JSON; only the runtime reads
    /// them.
    pub terms: String,
}

/// Entries of an agent of the same realm that another's history begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The owner of the entries.
    pub agent: AgentId,
    /// The first entry: 0, or a compaction, whose checksum needs nothing before it. Any other is a
    /// bad step.
    pub from: u64,
    /// One past the last entry. A range beyond the existing entries is a bad step.
    pub to: u64,
}

/// An entry to add.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Its number among the agent's own entries, from 0.
    pub seq: u64,
    /// Its kind.
    pub kind: EntryKind,
    /// Its beginning, if it shares that with its siblings; a comma joins it to `encoded`. Of an
    /// entry of the kind [`Model`](EntryKind::Model) the preamble of all requests after it. Stored
    /// once per realm, by content.
    pub head: Option<Encoded>,
    /// Definitions of tools that the entry brings, which the requests from it on have besides: a
    /// JSON array of [`ToolSpec`](posse_protocol::ToolSpec). Stored once per realm, by content.
    pub loaded: Option<Encoded>,
    /// The bytes as sent, after the head. Of an entry of the kind [`Model`](EntryKind::Model) a
    /// message for people, which is not sent.
    pub encoded: Encoded,
    /// Checksum of all these bytes and of the agent's own entries before it, back to the last
    /// compaction; see [`checksum`] and [`with_loaded`].
    pub checksum: u64,
    /// Facts about a reply. Those of an entry of the kind [`Model`](EntryKind::Model) name the
    /// model that the agent has from then on, which its record shows.
    pub reply: Option<ReplyFacts>,
}

impl NewEntry {
    /// Returns the model that the agent has from this entry on, if it changes.
    pub fn model(&self) -> Option<&str> {
        let facts = self
            .reply
            .as_ref()
            .filter(|_| self.kind == EntryKind::Model);
        facts.map(|facts| facts.model.as_str())
    }

    /// Returns what it says: one message, or several joined by commas. These are the bytes as sent,
    /// but for an entry of the kind [`Model`](EntryKind::Model), of which nothing is sent.
    pub fn sent(&self) -> Bytes {
        match self.head.as_ref().filter(|_| self.kind != EntryKind::Model) {
            Some(head) => Bytes::from([&head.bytes[..], b",", &self.encoded.bytes[..]].concat()),
            None => self.encoded.bytes.clone(),
        }
    }
}

/// Chains an entry to the ones before it, which detects flipped bits and lost or swapped entries. A
/// compaction starts a new chain, since nothing older is read with it.
pub fn checksum<T: AsRef<[u8]> + ?Sized>(
    previous: u64,
    seq: u64,
    kind: EntryKind,
    head: Option<&T>,
    encoded: &T,
) -> u64 {
    // The numbers are part of stored checksums and must never change.
    let (previous, kind) = match kind {
        EntryKind::Prompt => (previous, 1),
        EntryKind::Reply => (previous, 2),
        EntryKind::Results => (previous, 3),
        EntryKind::Compaction => (0, 4),
        EntryKind::Model => (previous, 5),
    };
    let (head, encoded) = (head.map_or(&[][..], |head| head.as_ref()), encoded.as_ref());
    let front = [previous, seq, kind, (head.len() + encoded.len()) as u64].map(u64::to_le_bytes);
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(front.as_flattened());
    hasher.update(head);
    hasher.update(encoded);
    hasher.digest()
}

/// Returns the checksum of an entry that brings definitions, made from that of its bytes. Of one that
/// brings none it is that.
pub fn with_loaded<T: AsRef<[u8]> + ?Sized>(checksum: u64, loaded: Option<&T>) -> u64 {
    let Some(loaded) = loaded.map(AsRef::as_ref) else {
        return checksum;
    };
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(&checksum.to_le_bytes());
    hasher.update(loaded);
    hasher.digest()
}

/// A change of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallChange {
    /// The call.
    pub key: CallKey,
    /// The change.
    pub change: CallChangeKind,
}

/// A kind of change of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallChangeKind {
    /// The model requested it.
    Asked {
        /// The model's id of the call.
        id: String,
        /// The tool's name.
        tool: String,
        /// The sandbox that is to hold it, if it runs a command.
        tier: Option<Tier>,
    },
    /// Its effects may have begun.
    Begun {
        /// The sandbox that holds it, if it runs a command.
        tier: Option<Tier>,
    },
    /// It has an outcome.
    Done(CallOutcome),
}

/// Outcome of a tool call, as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// The content.
    pub content: Arc<[ToolContent]>,
    /// True if it failed.
    pub is_error: bool,
}

/// A model call to be paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The model that answered, or was asked.
    pub model: String,
    /// Its usage.
    pub usage: Usage,
    /// Its cost; `None` if the price is unknown.
    pub cost: Option<Cost>,
    /// Its purpose.
    pub purpose: Purpose,
    /// Prompt tokens that had been in the provider's cache and were not found there.
    pub missed: u64,
}

impl std::ops::AddAssign<&Self> for Charge {
    /// Adds usage and cost of another charge of the same model and purpose. A cost that is unknown
    /// makes the sum unknown.
    fn add_assign(&mut self, more: &Self) {
        self.usage += more.usage;
        self.cost = self.cost.zip(more.cost).map(|(sum, more)| sum + more);
        self.missed = self.missed.saturating_add(more.missed);
    }
}

/// A file whose content an agent knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// Its resolved path.
    pub path: PathBuf,
    /// A hash of its content.
    pub version: u64,
}

/// Mail that this step shows to the model; it is not shown again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenMail {
    /// Its number in the agent's inbox. It must be waiting: mail taken before is a bad step.
    pub number: u64,
    /// The entry that shows it, which must be one of this step.
    pub entry: u64,
}

/// A change of an agent's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// To this state.
    To(AgentState),
    /// To this state, unless other mail than this step takes waits at commit: then state, `ended`
    /// and the operations of the step are left out, the rest is committed, and
    /// [`Committed::mail_waits`] is set. Atomic: no mail can arrive in between.
    UnlessMail(AgentState),
}

/// A change of a background command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChange {
    /// The run.
    pub id: Uuid,
    /// The change.
    pub change: RunChangeKind,
}

/// A kind of change of a background run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunChangeKind {
    /// It started.
    Began {
        /// The call that began it.
        call: CallKey,
        /// Its kind.
        kind: RunKind,
        /// Description for people.
        description: String,
        /// The file its output goes to.
        output: PathBuf,
    },
    /// It ended. The mail sent by the same step has the details.
    Ended(RunStatus),
}

/// State of an agent, as far as the store needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentState {
    /// Its last run has ended, and it accepts new prompts.
    Idle,
    /// A run is open. In the store of a dead process it means an interrupted run.
    Running,
    /// A fault or a budget stopped its run, which can be continued.
    Paused,
    /// It was created and waits for a slot for its first call.
    Created,
    /// Its run is open, and waits for runs it has started, for a person, or for a slot.
    Waiting,
    /// A sub-agent whose run ended by itself.
    Completed,
    /// A sub-agent whose run a limit stopped.
    Partial,
    /// A sub-agent whose run could not continue.
    Failed,
    /// A sub-agent that was stopped.
    Killed,
}

impl AgentState {
    /// All states.
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

    /// Returns true if a run is open in this state.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Created | Self::Waiting)
    }

    /// Returns how a sub-agent's run ended; `None` if it has not.
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

    /// Returns the state of a team member whose agent is in this state.
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

    /// Returns the word used in lists.
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

/// Result of a sub-agent's run, besides its messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRun {
    /// The run; also the id of the mail that reports it.
    pub run: Uuid,
    /// Why it failed, was paused or was cut short.
    pub error: Option<String>,
    /// True if a person stopped it: then no agent can revive it.
    pub by_person: bool,
    /// The newest mail that waited when it was stopped: only later mail revives it.
    #[serde(default)]
    pub mail: u64,
    /// Its usage.
    pub usage: RunUsage,
    /// Its last text, if no mail reports it because somebody waited for it.
    #[serde(default)]
    pub text: Option<String>,
    /// The same as a value, if a schema was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RawJson>,
    /// What happened to its worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeEnd>,
}
