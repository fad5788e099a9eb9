//! Views: what can be read from a store.

use std::path::PathBuf;

use bytes::Bytes;
use posse_protocol::{
    AgentId, HostId, ListId, Mail, MailId, Member, Name, Note, PermissionMode, RealmId,
    RequestKind, RunKind, Sender, Takes, Task, TaskStatus, Team,
};
use uuid::Uuid;

use super::{
    AgentState, CallKey, CallOutcome, Charge, EndedRun, Epoch, NewEntry, OpResult, Origin,
    QuestionRecord, SeenFile, Segment,
};
use crate::confinement::Tier;
use crate::model::Encoded;

/// A taken agent, with everything needed to continue it.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The epoch to write with.
    pub epoch: Epoch,
    /// The agent's current transcript.
    pub transcript: Transcript,
    /// Files whose content it knows.
    pub seen: Vec<SeenFile>,
    /// Number of waiting messages.
    pub mail: u64,
    /// Background commands that have not ended, oldest first.
    pub runs: Vec<BackgroundRun>,
    /// Its questions that it has not finished with, oldest first.
    pub questions: Vec<QuestionRecord>,
}

/// A background command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundRun {
    /// The run.
    pub id: Uuid,
    /// The call that began it.
    pub call: CallKey,
    /// Its kind.
    pub kind: RunKind,
    /// Description for people.
    pub description: String,
    /// The file its output goes to.
    pub output: PathBuf,
    /// Start time.
    pub began_ms: i64,
}

/// A call without a result in the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The call.
    pub key: CallKey,
    /// The model's id of the call.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// True if its effects may have begun.
    pub begun: bool,
    /// Its outcome, if it has one.
    pub outcome: Option<CallOutcome>,
    /// Results of its operations, if it had any and they are committed.
    pub operated: Option<Vec<OpResult>>,
}

/// How strongly a call that runs a command was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTier {
    /// The call.
    pub key: CallKey,
    /// The sandbox that held it when it ran last, or was to hold it.
    pub tier: Tier,
}

/// An agent as the store has it.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The agent and its session.
    pub record: AgentRecord,
    /// The encoding of its bytes.
    pub dialect: String,
    /// The part of its requests that stays the same for its life.
    pub preamble: Encoded,
    /// The segments its history begins with, as at its birth. Empty if it was taken and has a
    /// compaction of its own.
    pub segments: Vec<Segment>,
    /// The history, oldest first: the segments' entries, then its own. If it was taken and has a
    /// compaction of its own, the entries from the last one on. Entries with the same head share
    /// its bytes. Checksums are not verified here.
    pub entries: Vec<StoredEntry>,
    /// Number of entries that are not its own.
    pub inherited: usize,
    /// Calls of its last own reply, in order, if neither their results nor a compaction follow it.
    pub open_calls: Vec<OpenCall>,
}

/// An entry as the store has it.
#[derive(Clone, Debug)]
pub struct StoredEntry {
    /// The owner of the entry; another agent where history is shared.
    pub agent: AgentId,
    /// Commit time, in milliseconds of Unix time.
    pub at_ms: i64,
    /// The entry.
    pub entry: NewEntry,
}

/// A part of a transcript.
#[derive(Clone, Debug)]
pub struct EntryPage {
    /// Number of entries of the whole transcript.
    pub total: u64,
    /// Number of those that are not the agent's own: these come first.
    pub inherited: u64,
    /// Position of the first of these entries.
    pub first: u64,
    /// The entries, oldest first. Checksums are not verified here.
    pub entries: Vec<StoredEntry>,
}

/// An agent and its current state.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRecord {
    /// Its realm.
    pub realm: RealmId,
    /// The agent.
    pub agent: AgentId,
    /// Its maker and purpose; `None` for a root.
    pub origin: Option<Box<Origin>>,
    /// The agent that is notified when its run ends.
    pub starter: Option<AgentId>,
    /// Its path in the tree.
    pub path: String,
    /// The model's name.
    pub model: String,
    /// Its mode.
    pub mode: PermissionMode,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its state.
    pub state: AgentState,
    /// Result of its last run, if that has ended.
    pub ended: Option<Box<EndedRun>>,
    /// The live process that holds it, for people: `pid 4711`.
    pub holder: Option<String>,
    /// Creation time, in milliseconds of Unix time.
    pub created_ms: i64,
    /// Time of its last committed step; changes by others do not count.
    pub used_ms: i64,
    /// The bytes of its first own or inherited prompt, as sent. An agent that inherits a compaction
    /// also inherits the prompt before it.
    pub first_prompt: Option<Bytes>,
    /// Number of entries, including inherited ones and those that a compaction replaces.
    pub entries: u64,
    /// Everything it was charged: one sum per model and purpose, sorted by these.
    pub charges: Vec<Charge>,
    /// The worst case of a model call whose reply is not stored: what the step of its last entry
    /// reserved, while the agent is [`Running`](AgentState::Running). If no process holds the
    /// agent, that call was cut off.
    pub reserved: Option<Box<Charge>>,
    /// A fingerprint of the agent types and skills that its model has been told of.
    pub types: Option<u64>,
}

impl AgentRecord {
    /// Returns the ID of the process that holds it, if that is on this machine.
    pub fn pid_here(&self) -> Option<u32> {
        // A process of another machine is named with it.
        self.holder.as_deref()?.strip_prefix("pid ")?.parse().ok()
    }

    /// Returns its charges, and what is reserved for a call in flight.
    pub fn with_reserved(&self) -> impl Iterator<Item = &Charge> {
        self.charges.iter().chain(self.reserved.as_deref())
    }
}

/// An agent as a list of many shows it. It is read by its key alone: nothing of its transcript, and
/// no sum over what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRow {
    /// The agent.
    pub agent: AgentId,
    /// Its maker; `None` for a root.
    pub parent: Option<AgentId>,
    /// Its path in the tree.
    pub path: String,
    /// Its registered name.
    pub name: Option<Name>,
    /// Its type; empty for a root.
    pub agent_type: String,
    /// What it was made for; empty for a root.
    pub description: String,
    /// The model's name.
    pub model: String,
    /// Its mode.
    pub mode: PermissionMode,
    /// Its working directory, which is in its worktree if it has one.
    pub cwd: PathBuf,
    /// Its state.
    pub state: AgentState,
    /// Number of messages that wait for it.
    pub waiting: u64,
    /// The live process that holds it, for people: `pid 4711`.
    pub holder: Option<String>,
    /// Creation time, in milliseconds of Unix time.
    pub created_ms: i64,
    /// Time of its last committed step; changes by others do not count.
    pub used_ms: i64,
}

/// Rows of a realm's agents, with the feed's last number at the same moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentRows {
    /// The last number of the realm's feed: what the rows do not show yet has a higher one.
    pub number: u64,
    /// The rows.
    pub rows: Vec<AgentRow>,
}

/// What an agent and all agents below it were charged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubtreeSpending {
    /// Number of agents, including the one at the top; 0 if there is no such agent.
    pub agents: u64,
    /// One sum per model and purpose, sorted by these; with what is reserved for calls in flight.
    pub charges: Vec<Charge>,
}

impl SubtreeSpending {
    /// Adds a charge to the sum of its model and purpose.
    pub fn add(&mut self, charge: Charge) {
        let key = |charge: &Charge| (charge.model.clone(), charge.purpose);
        match self.charges.binary_search_by_key(&key(&charge), key) {
            Ok(at) => self.charges[at] += &charge,
            Err(at) => self.charges.insert(at, charge),
        }
    }
}

/// A filter for sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those in this working directory.
    pub cwd: Option<PathBuf>,
    /// Only those whose id has this prefix.
    pub id_prefix: Option<String>,
}

/// A filter for agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFilter {
    /// Only this one.
    pub id: Option<AgentId>,
    /// Only those whose id has this prefix.
    pub id_prefix: Option<String>,
    /// Only those of this realm.
    pub realm: Option<RealmId>,
    /// Only those that a live process holds.
    pub held: bool,
    /// Only those that this agent made; sorted by age.
    pub parent: Option<AgentId>,
    /// Only the one registered under this name in the realm.
    pub name: Option<Name>,
    /// Only sub-agents with an open run or waiting mail. The cost depends on their number only.
    pub unfinished: bool,
}

/// A filter for mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailFilter {
    /// Only mail that was not shown yet.
    pub waiting: bool,
}

/// A filter for tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only those with this status.
    pub status: Option<TaskStatus>,
    /// Only those that this agent could claim now: pending, not blocked, and either its own or
    /// unowned and accepted by `takes`.
    pub ready: Option<Ready>,
    /// Only those owned by this agent.
    pub owner: Option<AgentId>,
    /// Only those that an agent owns and could begin now: pending and not blocked.
    pub assigned: bool,
    /// Only pending ones that were lost by an owner of this name.
    pub lost_by: Option<String>,
}

/// A potential claimer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The agent; if `None`, only unowned tasks match.
    pub agent: Option<AgentId>,
    /// Filter for unowned tasks.
    pub takes: Takes,
}

/// Membership of an agent in one team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The team.
    pub team: Name,
    /// The team's lead.
    pub lead: AgentId,
    /// The agent as a member.
    pub member: Member,
}

/// An open request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its id.
    pub id: MailId,
    /// Its kind.
    pub kind: RequestKind,
    /// The requester.
    pub from: Sender,
    /// The agent that is asked.
    pub to: AgentId,
    /// The reason, or the plan.
    pub text: String,
    /// Time of the request.
    pub asked_ms: i64,
}

/// The complete data of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The team and its members.
    pub team: Team,
    /// Its notes, by name.
    pub notes: Vec<Note>,
    /// Its tasks by number, including deleted ones.
    pub tasks: Vec<Task>,
    /// The highest task number ever used.
    pub last_task: u64,
    /// The inboxes of its members, in the order of the members.
    pub mail: Vec<Vec<Mail>>,
}

/// An event that concerns a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// Mail, or the answer to a question, waits for an agent that the host holds.
    Mail(AgentId),
    /// A task of this list has become ready for someone: its owner, or other claimers than before.
    Tasks(ListId),
    /// Another host has died or was found stalled; everything it held is free.
    Died(HostId),
    /// This host was declared dead. It holds nothing and can no longer write.
    Fenced,
}
