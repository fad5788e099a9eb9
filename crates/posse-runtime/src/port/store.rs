//! The store port: where transcripts live, and what is promised about them.
//!
//! The heart is [`Store::commit`]: whatever an agent does between two waits for the outside world is
//! one [`Step`], committed whole or not at all, durable when the call returns, and refused if somebody
//! else has taken the agent over. Nothing is ever changed in place that was part of a conversation.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use posse_protocol::{AgentId, Cost, EntryKind, PermissionMode, RealmId, ReplyFacts, ToolContent, Usage};

use super::BoxFuture;
use super::model::Piece;

/// Where transcripts live.
pub trait Store: Send + Sync {
    /// Commits a step. When this returns `Ok` the step is durable, through kill -9 and power loss;
    /// when it returns `Err`, nothing was acknowledged, and the agent's writer must stop: whether the
    /// step is there after all is found out by whoever takes the agent next.
    ///
    /// Steps of one agent are committed in the order of the calls. A step of an epoch that is not the
    /// agent's current one is refused with [`StoreError::Fenced`], alone: other steps of the same
    /// batch are not touched.
    fn commit(&self, step: Step) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Makes the caller's process the agent's only writer and gives all there is to go on from.
    /// Refused with [`StoreError::Held`] while another live process is.
    fn take(&self, agent: AgentId) -> BoxFuture<'_, Result<Taken, StoreError>>;

    /// Gives the agent up, so that others need not find out first that this process has ended.
    /// With an old epoch it does nothing.
    fn release(&self, agent: AgentId, epoch: Epoch) -> BoxFuture<'_, Result<(), StoreError>>;

    /// A transcript to look at; nothing is taken.
    fn read(&self, agent: AgentId) -> BoxFuture<'_, Result<Transcript, StoreError>>;

    /// Root agents, the one used last first, at most `limit`.
    fn sessions(
        &self,
        filter: SessionFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Session>, StoreError>>;
}

/// How often an agent has changed hands. Whoever holds the highest one may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// What one agent does between two waits for the outside world.
#[derive(Clone, Debug)]
pub struct Step {
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
    /// The state from now on, if it changes.
    pub state: Option<AgentState>,
    /// The mode from now on, if it changes.
    pub mode: Option<PermissionMode>,
    /// Wall time, in milliseconds of Unix time.
    pub at_ms: i64,
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
    /// Whose spelling its bytes are in; see [`Model::dialect`](super::model::Model::dialect).
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

/// An agent that was taken, with all there is to go on from.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The epoch to write with.
    pub epoch: Epoch,
    /// The agent as it stands.
    pub transcript: Transcript,
    /// Files whose content it knows.
    pub seen: Vec<SeenFile>,
}

/// A call without a result in the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The call.
    pub key: CallKey,
    /// The model's id of it.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Whether its effects may have begun.
    pub begun: bool,
    /// What it came to, if it got that far.
    pub outcome: Option<CallOutcome>,
}

/// An agent as the store has it.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The agent and its session.
    pub session: Session,
    /// Whose spelling its bytes are in.
    pub dialect: String,
    /// What stays the same for its life.
    pub preamble: Piece,
    /// What its history is put together from: segments of others first, its own entries last.
    pub segments: Vec<Segment>,
    /// The history, oldest first: the segments' entries, then its own. Checksums are not verified here.
    pub entries: Vec<StoredEntry>,
    /// How many of them are not its own.
    pub inherited: usize,
    /// Calls of the last own reply, in its order, if their results are not in the transcript yet.
    pub open_calls: Vec<OpenCall>,
}

/// An entry as the store has it.
#[derive(Clone, Debug)]
pub struct StoredEntry {
    /// Whose entry it is; another's where history is shared.
    pub agent: AgentId,
    /// When it was committed, in milliseconds of Unix time.
    pub at_ms: i64,
    /// The entry.
    pub entry: NewEntry,
}

/// A root agent and what it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Its tree.
    pub realm: RealmId,
    /// The agent.
    pub agent: AgentId,
    /// The agent that started it.
    pub parent: Option<AgentId>,
    /// Its path in the tree.
    pub path: String,
    /// The model's name.
    pub model: String,
    /// Its mode.
    pub mode: PermissionMode,
    /// Its working directory.
    pub cwd: PathBuf,
    /// What it is doing.
    pub state: AgentState,
    /// Whether a live process has it.
    pub held: bool,
    /// When it was made, in milliseconds of Unix time.
    pub created_ms: i64,
    /// When it last committed a step.
    pub used_ms: i64,
    /// The bytes of its first own or inherited prompt, as sent.
    pub first_prompt: Option<Bytes>,
    /// Number of entries, inherited ones included.
    pub entries: u64,
    /// Everything it was charged, by model.
    pub charges: Vec<Charge>,
}

/// Which sessions are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those of this working directory.
    pub cwd: Option<PathBuf>,
    /// Only those whose id begins so.
    pub id_prefix: Option<String>,
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has taken the agent over; this one must stop.
    #[error("agent {agent} has been taken over by another process")]
    Fenced {
        /// The agent.
        agent: AgentId,
    },
    /// Another live process writes to the agent.
    #[error("session {agent} is open in another process ({holder})")]
    Held {
        /// The agent.
        agent: AgentId,
        /// The process, for people: `pid 4711`.
        holder: String,
    },
    /// There is no such agent.
    #[error("there is no session {agent}")]
    NotFound {
        /// The agent.
        agent: AgentId,
    },
    /// What is stored is not what was stored.
    #[error("the transcript of {agent} is damaged at entry {seq}")]
    Damaged {
        /// The agent.
        agent: AgentId,
        /// The first entry that is wrong.
        seq: u64,
    },
    /// The disk is full.
    #[error("the disk is full: {place} cannot grow")]
    Full {
        /// The file.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The engine failed.
    #[error("the store failed ({place})")]
    Engine {
        /// The file or server.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file was written by a newer posse.
    #[error("{place} was written by a newer posse (version {found} of its tables; this one knows {known})")]
    TooNew {
        /// The file.
        place: String,
        /// Its version.
        found: u32,
        /// The newest one known here.
        known: u32,
    },
    /// The caller broke a rule of this port.
    #[error("a step that cannot be committed: {0}")]
    BadStep(String),
}
