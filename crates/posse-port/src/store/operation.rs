//! Operations: what agents and people do to each other, to tasks and to teams.
//!
//! An operation that cannot be done has a [`Refusal`], which is an answer and no error: it commits
//! together with the rest, and whoever asked is told.

use std::path::PathBuf;

use posse_protocol::{
    AgentId, MailId, MailKind, Name, RealmId, RequestKind, Takes, Task, TaskId, TaskStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallKey, Charge};

/// The longest message, summary included, in bytes.
pub const MAIL_BYTES: usize = 256 * 1024;
/// How many messages may wait in an inbox.
pub const INBOX_MAILS: u64 = 10_000;
/// How many bytes may wait in an inbox.
pub const INBOX_BYTES: u64 = 64 * 1024 * 1024;
/// The longest text of a task, metadata included, and of a note, in bytes.
pub const TEXT_BYTES: usize = 256 * 1024;

/// How deep the metadata of a task may nest. What came of an operation is kept as JSON around it, and must
/// be read again by whoever takes the agent.
pub const METADATA_DEPTH: usize = 32;

/// How deep a value nests; 1 for one that holds no other.
pub fn depth(value: &Value) -> usize {
    // Without recursion, because what is measured here may be too deep for the stack.
    let (mut deepest, mut open) = (0, vec![(value, 1)]);
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(values) => open.extend(values.iter().map(|value| (value, depth + 1))),
            Value::Object(values) => open.extend(values.values().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    deepest
}

/// An operation of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The tool call that it is for: its result is kept with the call, in the same transaction.
    pub call: Option<CallKey>,
    /// What is to be done.
    pub op: Op,
}

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The realm it is about.
    pub realm: RealmId,
    /// What is to be done.
    pub ops: Vec<Op>,
    /// Wall time.
    pub at_ms: i64,
}

/// What can be done. `team` with a task is the list: the team's, or none for the session's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Puts a message into inboxes. The sender is whoever does it: an agent by its name in the team
    /// that it writes to, else in the first team (by name) that it belongs to, else by the name it is
    /// registered under, else by its path. Who leads that team is called `team-lead`, and whoever leads a team
    /// has this address in it. A [`MailKind::Notification`] or [`MailKind::Idle`] always has room: there are no more
    /// of them than runs that were started; so has a [`MailKind::Interruption`] or [`MailKind::Dismissal`]. Requests and their answers are sent by
    /// [`Op::Request`] and [`Op::Respond`] alone, interruptions and dismissals only by a person, the lead of a
    /// team that the recipient belongs to, or the agent that made it.
    Send {
        /// Its id, the same for every recipient.
        id: MailId,
        /// Who gets it.
        to: Address,
        /// What it is.
        kind: MailKind,
        /// In a few words.
        summary: String,
        /// The text.
        body: String,
    },
    /// Books a model call that was made about an agent of the realm, and not by it. Only in an [`Order`]:
    /// what an agent spends itself is among [`Step::charges`](super::Step::charges), and a step with this is
    /// refused with [`StoreError::BadStep`](super::StoreError::BadStep). It adds to the agent's charges and
    /// changes nothing else, whoever holds the agent: it does not count as using it.
    Charge {
        /// The agent.
        agent: AgentId,
        /// What it took.
        charge: Box<Charge>,
    },
    /// Makes a team, with its lead as first member, called `team-lead`.
    CreateTeam {
        /// Its name.
        team: Name,
        /// What it is for.
        description: String,
        /// Whatever else is to be kept with it.
        settings: Map<String, Value>,
        /// Its lead.
        lead: Box<Joining>,
    },
    /// Removes a team with its notes, its tasks, its open requests, and the inboxes of its members other than
    /// the lead that belong to no other team. Refused while one of its members but the lead has not shut down and
    /// is held by a host that lives and is not stalled.
    DeleteTeam {
        /// Its name.
        team: Name,
    },
    /// Adds a member, and makes its inbox if it has none. A name that a member has or ever had, or that means
    /// somebody already, or that an agent of the realm is registered under, gets a number from 2 on, higher than any
    /// that it has in the team; [`Done::Joined`] says which. Its
    /// colour is the one it wishes if no member has it, else the first of [`posse_protocol::team::color`] that
    /// none has.
    Join {
        /// The team.
        team: Name,
        /// The member's name, as it was wished.
        name: Name,
        /// The member.
        member: Box<Joining>,
        /// If given, its prompt is its first mail, from the team's lead.
        greeting: Option<Greeting>,
    },
    /// Makes another member the team's lead; only whoever leads it may, or a person. The one who led so far stays
    /// a member, as `main` if it was called `team-lead` (with a number if somebody has that name), and so in the
    /// tasks that it has. Plans that wait for approval wait for the new lead's, who gets them as mail anew; but
    /// its own plan waits for who was asked. That the new lead should end is not asked any more. Refused for whoever
    /// leads already, and for one that has ended.
    HandOver {
        /// The team.
        team: Name,
        /// The new lead, by its name in the team.
        to: Name,
    },
    /// Asks somebody for a yes or no: sends a mail of the kind, and keeps the request open until it is answered,
    /// or until the member that it is about (who is to end, or has the plan) leaves the team or ends. To end is
    /// asked of a member other than the lead, by whoever may dismiss it. One that is asked for that again, while
    /// it is open, is not asked twice: the answer is the old request's receipt.
    Request {
        /// The request, and its mail.
        id: MailId,
        /// Who is asked. Plans go to the lead of the team, and only agents have any; that of the lead itself goes
        /// to the first member. Nobody is asked by itself, nor answers itself. An agent that is not named
        /// by a team is asked in the first, by name, that it belongs to, or leads.
        to: Address,
        /// For what.
        kind: RequestKind,
        /// Why, or the plan.
        text: String,
    },
    /// Answers a request that is open, by mail to whoever asked; with that it is not open any more. Only who was
    /// asked may, or of a plan a person. What a person asked is answered to the lead of the team: a person has no
    /// inbox. Who agrees to end leaves the team with it.
    Respond {
        /// The mail that tells of it.
        id: MailId,
        /// The request.
        request: MailId,
        /// Which kind of request is meant.
        kind: RequestKind,
        /// Yes or no.
        approve: bool,
        /// Why, or what should be different.
        text: String,
    },
    /// Removes a member; only itself may, who leads the team, who made it, or a person. If it leads the team, the
    /// first member leads from then on; but that one cannot leave while it leads. Tasks of the team that it was doing are pending again, those that it was to do are
    /// unowned; its inbox stays, and so does its name: nobody else gets it.
    Leave {
        /// The team.
        team: Name,
        /// The member's name.
        name: Name,
    },
    /// Writes a note, new or anew.
    WriteNote {
        /// The team.
        team: Name,
        /// The note's name.
        name: Name,
        /// All of its text.
        text: String,
        /// The version that the writer knows; 0 for a note that is new, none if it does not matter.
        expect: Option<u64>,
    },
    /// Makes a task: pending, unowned, with the next number of its list.
    CreateTask {
        /// The list.
        team: Option<Name>,
        /// The task.
        task: Box<NewTask>,
    },
    /// Changes a task. An agent other than its owner may not change the status or the owner of a task
    /// that is in progress, unless it leads the team. A task becomes in progress as by a claim: only if
    /// it waits for nothing, and only for an owner that is at work. An agent completes one that has a check only
    /// with [`TaskChange::passed`]; of a change that puts another check in its place both must have passed. A
    /// pending task without a check is given one by anybody; else the check is changed by the lead of the team, in
    /// the session's list by an agent that nobody made, or by a person. A change that changes nothing keeps the
    /// version.
    UpdateTask {
        /// The list.
        team: Option<Name>,
        /// The task.
        id: TaskId,
        /// The version that the writer knows; none if it does not matter.
        expect: Option<u64>,
        /// What becomes different.
        change: Box<TaskChange>,
    },
    /// Makes a task one's own, and its status in progress: exactly one of any number of claimers gets
    /// it. It must be pending, unowned or one's own already, and wait for nothing; what an
    /// agent of a dead or stalled host was doing is free. Claiming again what one has is granted and changes nothing.
    Claim {
        /// The list.
        team: Option<Name>,
        /// The task.
        id: TaskId,
    },
    /// The same with the lowest number that is pending, waits for nothing, and is one's own or unowned and among
    /// what the claimer takes.
    ClaimNext {
        /// The list.
        team: Option<Name>,
        /// Which of the unowned ones.
        takes: Takes,
    },
}

/// Who gets a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Address {
    /// An agent of the realm.
    Agent(AgentId),
    /// A member of a team.
    Member {
        /// The team.
        team: Name,
        /// Its name there.
        name: Name,
    },
    /// All members of a team but the sender: all of them get it, or none.
    Others {
        /// The team.
        team: Name,
    },
}

/// The first mail of a member: what is not its text, which is the member's prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The mail's id.
    pub id: MailId,
    /// What it is about, for people.
    pub summary: String,
}

/// One who joins a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// The agent.
    pub agent: AgentId,
    /// The type it was started as.
    pub agent_type: String,
    /// The model's name.
    pub model: String,
    /// What it was started with.
    pub prompt: String,
    /// The colour it would be shown in; another if a member has it.
    pub color: Option<String>,
    /// What runs it.
    pub backend: String,
    /// Where it works.
    pub cwd: PathBuf,
    /// The role that it was declared with.
    pub role: Option<String>,
    /// Which tasks it takes by itself.
    pub takes: Takes,
}

/// A task to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTask {
    /// What is to be done, in a line.
    pub subject: String,
    /// The same at length.
    pub description: String,
    /// The subject while it is being done.
    pub active_form: Option<String>,
    /// What must be done before it.
    pub blocked_by: Vec<TaskId>,
    /// Who may take it by itself.
    pub role: Option<String>,
    /// The command that must pass before it is completed.
    pub check: Option<String>,
    /// Whatever else is to be kept with it.
    pub metadata: Map<String, Value>,
}

/// What becomes different about a task; what is none stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskChange {
    /// The subject.
    pub subject: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The active form; an empty one is none.
    pub active_form: Option<String>,
    /// The status. In progress without an owner makes it the changer's own.
    pub status: Option<TaskStatus>,
    /// The owner by name: `user`, a member of the team, or in the session's list an agent by its path
    /// (of several the youngest); `team-lead` is whoever leads. `Some(None)` makes it unowned, and pending if it was in progress.
    pub owner: Option<Option<String>>,
    /// What it must wait for besides.
    pub block_on: Vec<TaskId>,
    /// What it need not wait for any more.
    pub unblock_from: Vec<TaskId>,
    /// Who may take it by itself; an empty word is anybody.
    pub role: Option<String>,
    /// The check; an empty one is none.
    pub check: Option<String>,
    /// The check that has passed, as it is written in the task.
    pub passed: Option<String>,
    /// Metadata to be set; a null removes its key.
    pub metadata: Map<String, Value>,
}

/// What came of an operation.
pub type OpResult = Result<Done, Refusal>;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// The message is in these inboxes, by name.
    Sent(Vec<Receipt>),
    /// The call is booked.
    Charged,
    /// The team is there.
    TeamCreated,
    /// The team is gone.
    TeamDeleted,
    /// The member belongs to the team.
    Joined {
        /// What it is called there.
        name: Name,
        /// The colour it is shown in.
        color: String,
    },
    /// The team has another lead.
    HandedOver,
    /// The request is open, under the id of the mail.
    Requested {
        /// The request.
        request: MailId,
        /// Who was asked.
        receipt: Receipt,
    },
    /// The request is answered.
    Responded(Receipt),
    /// The member has left.
    Left,
    /// The note is written.
    Noted {
        /// Its version now.
        version: u64,
    },
    /// The task is there.
    TaskCreated(TaskId),
    /// The task is changed.
    TaskUpdated {
        /// Its version now.
        version: u64,
        /// Tasks that have become claimable by it.
        freed: Vec<TaskId>,
    },
    /// The task is the claimer's, as it stands now.
    Claimed(Box<Task>),
}

/// A message that was put into an inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Whose.
    pub to: AgentId,
    /// What the recipient is called: its name in a team, else its registered one, else its path.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub kind: MailKind,
    /// Its number there.
    pub number: u64,
    /// Whether a host holds the recipient, and is told of it. If not, it waits for whoever takes it.
    pub held: bool,
}

/// Why an operation was not done. Of several reasons the first of these is told: the team or the task
/// is not there, it has another version, the doer may not, and last what is wrong with the values; but a
/// message is looked at before its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// Nobody has that address.
    #[error("no agent is named {to}")]
    NoSuchRecipient {
        /// What was written.
        to: String,
    },
    /// There is no such agent in the realm.
    #[error("there is no agent {agent}")]
    NoSuchAgent {
        /// The agent.
        agent: AgentId,
    },
    /// An inbox has no room; nobody got it.
    #[error("the inbox of {name} is full: {waiting} messages wait in it")]
    InboxFull {
        /// Whose.
        name: String,
        /// How many messages wait there.
        waiting: u64,
    },
    /// A text is too long.
    #[error("{bytes} bytes are too many: the limit is {most}")]
    TooLong {
        /// How long.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// Metadata nest too deep.
    #[error("the metadata is nested deeper than {most} levels")]
    TooDeep {
        /// How deep they may.
        most: usize,
    },
    /// Only words can go to everybody.
    #[error("a message of this kind goes to one recipient")]
    NotForAll,
    /// There is no such team.
    #[error("there is no team {team}")]
    NoSuchTeam {
        /// The name.
        team: Name,
    },
    /// There is such a team already.
    #[error("team {team} already exists")]
    TeamExists {
        /// The name.
        team: Name,
    },
    /// It leads the team: it has it already, or nobody is there to have it when it leaves.
    #[error("{name} leads the team")]
    IsLead {
        /// The name.
        name: Name,
    },
    /// Members of the team are held by live hosts.
    #[error("members are still at work: {}", .names.join(", "))]
    MembersLive {
        /// Their names.
        names: Vec<String>,
    },
    /// Only the lead of the team may.
    #[error("only the lead of team {team} may do that")]
    NotLead {
        /// The team.
        team: Name,
    },
    /// Only whoever leads or made it may.
    #[error("only the team lead may do that to {name}")]
    NotYours {
        /// Who was meant.
        name: String,
    },
    /// There is no such request, it was answered, or it was not the doer who was asked.
    #[error("no request {request} of that kind waits for your answer")]
    NotOpen {
        /// The request.
        request: MailId,
    },
    /// There is no such task.
    #[error("there is no task {id}")]
    NoSuchTask {
        /// The number.
        id: TaskId,
    },
    /// Somebody else has the task.
    #[error("task {id} is {by}'s")]
    AlreadyClaimed {
        /// The task.
        id: TaskId,
        /// Who has it.
        by: String,
    },
    /// Nobody can be doing a task who is not at work.
    #[error("{name} is not running")]
    NotRunning {
        /// The owner.
        name: String,
    },
    /// The task is done.
    #[error("task {id} is completed")]
    AlreadyCompleted {
        /// The task.
        id: TaskId,
    },
    /// The task waits for others.
    #[error("task {id} waits for {}", list(.by))]
    Blocked {
        /// The task.
        id: TaskId,
        /// What it waits for.
        by: Vec<TaskId>,
    },
    /// The task's check has not passed.
    #[error("task {id} can be completed only when its check passes: {check}")]
    Unchecked {
        /// The task.
        id: TaskId,
        /// The command.
        check: String,
    },
    /// Only some may change the check of the task.
    #[error(
        "the check of task {id} can be changed only by the lead or, without a team, by the main \
         agent"
    )]
    CheckStands {
        /// The task.
        id: TaskId,
    },
    /// No task of the list is pending, waits for nothing, and is the claimer's own or unowned and among what it
    /// takes.
    #[error("there is nothing to claim")]
    NothingToClaim,
    /// Somebody else has changed it since.
    #[error("it has changed in the meantime; it is at version {version}")]
    Changed {
        /// The version now; 0 if there is none.
        version: u64,
    },
    /// Tasks would wait for each other in a circle.
    #[error("the tasks would wait for each other: {}", list(.through))]
    Cycle {
        /// The circle, beginning with the task that was to be changed.
        through: Vec<TaskId>,
    },
}

fn list(tasks: &[TaskId]) -> String {
    tasks
        .iter()
        .map(TaskId::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
