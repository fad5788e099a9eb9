//! What can be seen in a store.

use std::path::PathBuf;

use bytes::Bytes;
use posse_protocol::{
    AgentId, HostId, ListId, Mail, MailId, Member, Name, Note, PermissionMode, RealmId,
    RequestKind, RunKind, Sender, Takes, Task, TaskStatus, Team,
};
use uuid::Uuid;

use super::{
    AgentState, CallKey, CallOutcome, Charge, EndedRun, Epoch, NewEntry, OpResult, Origin,
    SeenFile, Segment,
};
use crate::model::Encoded;

/// An agent that was taken, with all there is to go on from.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The epoch to write with.
    pub epoch: Epoch,
    /// The agent as it stands.
    pub transcript: Transcript,
    /// Files whose content it knows.
    pub seen: Vec<SeenFile>,
    /// How many messages wait for it.
    pub mail: u64,
    /// Background commands that have not ended, oldest first.
    pub runs: Vec<BackgroundRun>,
}

/// A background command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundRun {
    /// The run.
    pub id: Uuid,
    /// The call that began it.
    pub call: CallKey,
    /// What it is.
    pub kind: RunKind,
    /// What it does, for people.
    pub description: String,
    /// Where its output goes.
    pub output: PathBuf,
    /// When it began.
    pub began_ms: i64,
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
    /// What came of its operations, if it had any and they are committed.
    pub operated: Option<Vec<OpResult>>,
}

/// An agent as the store has it.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The agent and its session.
    pub record: AgentRecord,
    /// Whose spelling its bytes are in.
    pub dialect: String,
    /// What stays the same for its life.
    pub preamble: Encoded,
    /// What its history begins with, as at its birth. None if it was taken and has a compaction of its own.
    pub segments: Vec<Segment>,
    /// The history, oldest first: the segments' entries, then its own. If it was taken and has a compaction of
    /// its own, the entries from the last one on. Entries with the same head share its bytes. Checksums are
    /// not verified here.
    pub entries: Vec<StoredEntry>,
    /// How many of them are not its own.
    pub inherited: usize,
    /// Calls of the last own reply, in its order, if neither their results nor a compaction follow it.
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

/// An agent and what it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRecord {
    /// Its tree.
    pub realm: RealmId,
    /// The agent.
    pub agent: AgentId,
    /// Who made it, and what for; none for a root.
    pub origin: Option<Box<Origin>>,
    /// Who is told when its run ends.
    pub starter: Option<AgentId>,
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
    /// What its last run came to, if that has ended.
    pub ended: Option<Box<EndedRun>>,
    /// The live process that holds it, for people: `pid 4711`.
    pub holder: Option<String>,
    /// When it was made, in milliseconds of Unix time.
    pub created_ms: i64,
    /// When it last committed a step. What others do to it does not count.
    pub used_ms: i64,
    /// The bytes of its first own or inherited prompt, as sent. With a compaction it inherits what that stands
    /// for.
    pub first_prompt: Option<Bytes>,
    /// Number of entries, inherited ones included, whether or not a compaction stands for them.
    pub entries: u64,
    /// Everything it was charged: a sum for each model and purpose, sorted by these.
    pub charges: Vec<Charge>,
    /// A fingerprint of the types of agents and skills that its model has been told of.
    pub types: Option<u64>,
}

/// Which sessions are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those of this working directory.
    pub cwd: Option<PathBuf>,
    /// Only those whose id begins so.
    pub id_prefix: Option<String>,
}

/// Which agents are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFilter {
    /// Only this one.
    pub id: Option<AgentId>,
    /// Only those of this realm.
    pub realm: Option<RealmId>,
    /// Only those that a live process holds.
    pub held: bool,
    /// Only those that this agent made; they come by age.
    pub parent: Option<AgentId>,
    /// Only the one that is registered under this name in the realm.
    pub name: Option<Name>,
    /// Only sub-agents whose run is open, or for whom mail waits. Costs no more than there are such.
    pub unfinished: bool,
}

/// Which mail is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailFilter {
    /// Only what waits to be shown.
    pub waiting: bool,
    /// Only what has a higher number.
    pub after: u64,
}

/// Which tasks are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only those of this status.
    pub status: Option<TaskStatus>,
    /// Only those with a higher number.
    pub after: u64,
    /// Only those that this agent could claim now: pending, waiting for nothing, and its own or unowned and among
    /// what it takes.
    pub ready: Option<Ready>,
    /// Only those of this agent.
    pub owner: Option<AgentId>,
    /// Only those that an agent is to do and could begin now: pending, waiting for nothing, and some agent's.
    pub assigned: bool,
    /// Only pending ones that somebody of this name has lost.
    pub lost_by: Option<String>,
}

/// Who looks for something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The agent; if none is given, only unowned tasks are meant.
    pub agent: Option<AgentId>,
    /// Which of the unowned tasks it takes.
    pub takes: Takes,
}

/// What an agent is in one team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The team.
    pub team: Name,
    /// Who leads it.
    pub lead: AgentId,
    /// The agent as a member of it.
    pub member: Member,
}

/// A request that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its id.
    pub id: MailId,
    /// For what.
    pub kind: RequestKind,
    /// Who asks.
    pub from: Sender,
    /// Who is asked.
    pub to: AgentId,
    /// Why, or the plan.
    pub text: String,
    /// When it was asked.
    pub asked_ms: i64,
}

/// All of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The team and its members.
    pub team: Team,
    /// Its notes, by name.
    pub notes: Vec<Note>,
    /// Its tasks by their numbers, deleted ones too.
    pub tasks: Vec<Task>,
    /// The highest number that a task ever had.
    pub last_task: u64,
    /// The inboxes of its members, in the members' order.
    pub mail: Vec<Vec<Mail>>,
}

/// Something that a host should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// Mail waits for an agent that it holds.
    Mail(AgentId),
    /// A task of this list has become ready for somebody: for its owner, or for others than before.
    Tasks(ListId),
    /// Another host has died, or was found stalled; what it held is free.
    Died(HostId),
    /// This host was taken for dead. It holds nothing any more, and can write nothing any more.
    Fenced,
}
