//! Operations on mail, tasks and teams, by agents and people.
//!
//! An operation that cannot be performed has a [`Refusal`], which is an answer, not an error: it
//! commits with the rest of the step, and the caller is told.

use std::path::PathBuf;

use posse_protocol::{
    AgentId, GivenAnswer, MailId, MailKind, Name, QuestionId, RealmId, RequestKind, Takes, Task,
    TaskId, TaskStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallKey, Charge, QuestionState};

/// Maximum length of a message, including its summary, in bytes.
pub const MAIL_BYTES: usize = 256 * 1024;
/// Maximum number of messages waiting in an inbox.
pub const INBOX_MAILS: u64 = 10_000;
/// Maximum number of bytes waiting in an inbox.
pub const INBOX_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum length of the text of a task, including metadata, and of a note, in bytes.
pub const TEXT_BYTES: usize = 256 * 1024;

/// Maximum nesting depth of a task's metadata. Results of operations are stored as JSON around it
/// and must remain parseable.
pub const METADATA_DEPTH: usize = 32;

/// Returns the nesting depth of a value; 1 for one without children.
pub fn depth(value: &Value) -> usize {
    // Not recursive, because the value may be too deep for the stack.
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
    /// The tool call it belongs to: its result is stored with the call, in the same transaction.
    pub call: Option<CallKey>,
    /// The operation.
    pub op: Op,
}

/// Operations requested by a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Their realm.
    pub realm: RealmId,
    /// The operations.
    pub ops: Vec<Op>,
    /// Wall time.
    pub at_ms: i64,
}

/// An operation. For tasks, `team` selects the list: the team's, or the session's own if `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Puts a message into inboxes. The sender is the caller: an agent by its name in the team that
    /// it writes to, else in the first team (by name) that it belongs to, else by its registered
    /// name, else by its path. The lead of that team is called `team-lead`, which is also the
    /// lead's address in it. A [`MailKind::Notification`] or [`MailKind::Idle`] always has room, as
    /// there are no more of them than started runs; so has a [`MailKind::Interruption`] or
    /// [`MailKind::Dismissal`]. Requests and their answers are sent by [`Op::Request`] and
    /// [`Op::Respond`] only; interruptions and dismissals only by a person, the lead of a team that
    /// the recipient belongs to, or the agent that made it.
    Send {
        /// Its id, the same for every recipient.
        id: MailId,
        /// The recipients.
        to: Address,
        /// The kind of message.
        kind: MailKind,
        /// The summary, a few words.
        summary: String,
        /// The text.
        body: String,
    },
    /// Books a model call that was made about an agent of the realm, but not by it. Only in an
    /// [`Order`]: an agent's own spending is in [`Step::charges`](super::Step::charges), and a step
    /// with this operation is refused with [`StoreError::BadStep`](super::StoreError::BadStep). It
    /// only adds to the agent's charges, even if another host holds it, and does not count as using
    /// it.
    Charge {
        /// The agent.
        agent: AgentId,
        /// The charge.
        charge: Box<Charge>,
    },
    /// Answers a question to a person: the first answer counts. Only in an [`Order`]: no agent
    /// answers, and a step with this operation is refused with
    /// [`StoreError::BadStep`](super::StoreError::BadStep).
    Answer {
        /// The question.
        question: QuestionId,
        /// The answer.
        answer: Box<GivenAnswer>,
    },
    /// Creates a team; its lead becomes the first member, called `team-lead`.
    CreateTeam {
        /// Its name.
        team: Name,
        /// Its purpose.
        description: String,
        /// Other data to store with it.
        settings: Map<String, Value>,
        /// Its lead.
        lead: Box<Joining>,
    },
    /// Removes a team with its notes, its tasks, its open requests, and the inboxes of its members
    /// other than the lead that belong to no other team. Refused while a member other than the lead
    /// has not shut down and is held by a host that is alive and not stalled.
    DeleteTeam {
        /// Its name.
        team: Name,
    },
    /// Adds a member, and creates its inbox if it has none. A name that a member has or ever had,
    /// that already addresses someone, or that an agent of the realm is registered under, gets a
    /// number from 2 on, higher than any in use with it in the team; [`Done::Joined`] returns the
    /// result. Its colour is the preferred one if no member has it, else the first of
    /// [`posse_protocol::team::color`] that is free.
    Join {
        /// The team.
        team: Name,
        /// The requested name.
        name: Name,
        /// The member.
        member: Box<Joining>,
        /// If given, its prompt is its first mail, from the team's lead.
        greeting: Option<Greeting>,
    },
    /// Makes another member the team's lead; only for the lead or a person. The former lead stays a
    /// member, renamed `main` if it was called `team-lead` (with a number if that name is taken),
    /// also in its tasks. Plans that wait for approval are sent again as mail to the new lead; but
    /// its own plan stays with the agent that was asked. An open request that the new lead shut
    /// down is dropped. Refused for the current lead, and for a member that has ended.
    HandOver {
        /// The team.
        team: Name,
        /// The new lead, by its name in the team.
        to: Name,
    },
    /// Asks someone for a yes or no: sends a mail of the kind, and keeps the request open until it
    /// is answered, or until the member it is about (who is to end, or has the plan) leaves the
    /// team or ends. A shutdown is requested of a member other than the lead, by anyone who may
    /// dismiss it. A repeated shutdown request while one is open is not sent: it returns the
    /// receipt of the first.
    Request {
        /// The request, and its mail.
        id: MailId,
        /// The agent that is asked. Plans go to the lead of the team, and only agents have plans;
        /// the lead's own goes to the first member. No agent asks or answers itself. An agent
        /// addressed without a team is asked in the first team, by name, that it belongs to or
        /// leads.
        to: Address,
        /// The kind of request.
        kind: RequestKind,
        /// The reason, or the plan.
        text: String,
    },
    /// Answers and closes an open request, by mail to the requester. Only for the agent that was
    /// asked or, for a plan, a person. The answer to a person's request goes to the lead of the
    /// team, as a person has no inbox. A member that agrees to end also leaves the team.
    Respond {
        /// The mail with the answer.
        id: MailId,
        /// The request.
        request: MailId,
        /// The expected kind of request.
        kind: RequestKind,
        /// Yes or no.
        approve: bool,
        /// The reason, or the requested changes.
        text: String,
    },
    /// Removes a member; only for the member itself, the team's lead, the member's maker, or a
    /// person. If it leads the team, the first member becomes the lead; the first member itself
    /// cannot leave while it leads. Tasks of the team that it was doing are pending again, those
    /// assigned to it are unowned; its inbox stays, and its name is not reused.
    Leave {
        /// The team.
        team: Name,
        /// The member's name.
        name: Name,
    },
    /// Writes or overwrites a note.
    WriteNote {
        /// The team; `None` for a note of the session.
        team: Option<Name>,
        /// The note's name.
        name: Name,
        /// The whole text.
        text: String,
        /// The version that the writer knows; 0 for a new note, `None` to skip the check.
        expect: Option<u64>,
    },
    /// Creates a task: pending, unowned, with the next number of its list.
    CreateTask {
        /// The list.
        team: Option<Name>,
        /// The task.
        task: Box<NewTask>,
    },
    /// Changes a task. Only its owner, the team's lead or a person may change the status or the
    /// owner of a task in progress. A task becomes in progress as by a claim: only if it is not
    /// blocked, and only for an owner that is at work. An agent completes a task with a check only
    /// with [`TaskChange::passed`]; if the same change replaces the check, both must have passed.
    /// Anyone may add a check to a pending task without one; otherwise only the lead of the team,
    /// in the session's list an agent without a maker, or a person may change it. A change without
    /// effect keeps the version.
    UpdateTask {
        /// The list.
        team: Option<Name>,
        /// The task.
        id: TaskId,
        /// The version that the writer knows; `None` to skip the check.
        expect: Option<u64>,
        /// The change.
        change: Box<TaskChange>,
    },
    /// Makes the caller the owner of a task and sets it in progress: exactly one of any number of
    /// claimers gets it. It must be pending, not blocked, and unowned or already the caller's; a
    /// task held by an agent of a dead or stalled host is free. Repeating a claim succeeds and
    /// changes nothing.
    Claim {
        /// The list.
        team: Option<Name>,
        /// The task.
        id: TaskId,
    },
    /// Claims the task with the lowest number that is pending, not blocked, and either the caller's
    /// own or unowned and accepted by `takes`.
    ClaimNext {
        /// The list.
        team: Option<Name>,
        /// Filter for unowned tasks.
        takes: Takes,
    },
}

/// Recipients of a message.
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
    /// All members of a team except the sender: all of them get it, or none.
    Others {
        /// The team.
        team: Name,
    },
}

/// The first mail of a member, without its text, which is the member's prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The mail's id.
    pub id: MailId,
    /// Its summary, for people.
    pub summary: String,
}

/// An agent that joins a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// The agent.
    pub agent: AgentId,
    /// Its agent type.
    pub agent_type: String,
    /// The model's name.
    pub model: String,
    /// Its prompt.
    pub prompt: String,
    /// The preferred colour; another is used if a member has it.
    pub color: Option<String>,
    /// The backend that runs it.
    pub backend: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its declared role.
    pub role: Option<String>,
    /// Filter for the tasks it takes by itself.
    pub takes: Takes,
}

/// A task to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTask {
    /// What is to be done, in one line.
    pub subject: String,
    /// Details.
    pub description: String,
    /// The subject in progressive form, shown while the task is in progress.
    pub active_form: Option<String>,
    /// The tasks it waits for.
    pub blocked_by: Vec<TaskId>,
    /// The role whose members may take it by themselves.
    pub role: Option<String>,
    /// The command that must pass before it is completed.
    pub check: Option<String>,
    /// Other data to store with it.
    pub metadata: Map<String, Value>,
}

/// A change of a task; fields that are `None` stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskChange {
    /// The subject.
    pub subject: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The active form; empty to remove it.
    pub active_form: Option<String>,
    /// The status. In progress without an owner makes the caller the owner.
    pub status: Option<TaskStatus>,
    /// The owner by name: `user`, a member of the team, or in the session's list an agent by its
    /// path (the youngest of several); `team-lead` is the current lead. `Some(None)` makes it
    /// unowned, and pending if it was in progress.
    pub owner: Option<Option<String>>,
    /// Additional tasks to wait for.
    pub block_on: Vec<TaskId>,
    /// Tasks no longer to wait for.
    pub unblock_from: Vec<TaskId>,
    /// The role whose members may take it by themselves; empty for anyone.
    pub role: Option<String>,
    /// The check; empty to remove it.
    pub check: Option<String>,
    /// The check that has passed, as written in the task.
    pub passed: Option<String>,
    /// Metadata to set; null removes a key.
    pub metadata: Map<String, Value>,
}

/// Result of an operation.
pub type OpResult = Result<Done, Refusal>;

/// Result of a successful operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// The message is in these inboxes, sorted by name.
    Sent(Vec<Receipt>),
    /// The call is booked.
    Charged,
    /// The question is answered.
    Answered {
        /// The agent that asked.
        agent: AgentId,
        /// True if a host holds the agent and is notified. If not, the answer waits until the agent
        /// is taken.
        held: bool,
    },
    /// The team was created.
    TeamCreated,
    /// The team was deleted.
    TeamDeleted,
    /// The member joined the team.
    Joined {
        /// Its name in the team.
        name: Name,
        /// Its colour.
        color: String,
    },
    /// The team has another lead.
    HandedOver,
    /// The request is open, under the id of the mail.
    Requested {
        /// The request.
        request: MailId,
        /// The receipt of the agent that was asked.
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
    /// The task was created.
    TaskCreated(TaskId),
    /// The task is changed.
    TaskUpdated {
        /// Its version now.
        version: u64,
        /// Tasks that became claimable by the change.
        freed: Vec<TaskId>,
    },
    /// The caller owns the task, in its current state.
    Claimed(Box<Task>),
}

/// A message in an inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The inbox's owner.
    pub to: AgentId,
    /// The recipient's name in a team, else its registered name, else its path.
    pub name: String,
    /// The kind of message.
    #[serde(default)]
    pub kind: MailKind,
    /// Its number in the inbox.
    pub number: u64,
    /// True if a host holds the recipient and is notified. If not, it waits until the recipient is
    /// taken.
    pub held: bool,
}

/// Why an operation was refused. The first of several reasons is reported: a missing team or task,
/// another version, missing permission, and last invalid values; but a message is checked before
/// its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// No agent has that address.
    #[error("no agent is named {to}")]
    NoSuchRecipient {
        /// The address as given.
        to: String,
    },
    /// The agent does not exist in the realm.
    #[error("there is no agent {agent}")]
    NoSuchAgent {
        /// The agent.
        agent: AgentId,
    },
    /// An inbox is full; nobody got the message.
    #[error("the inbox of {name} is full: {waiting} messages wait in it")]
    InboxFull {
        /// The inbox's owner.
        name: String,
        /// Number of waiting messages.
        waiting: u64,
    },
    /// A text is too long.
    #[error("{bytes} bytes are too many: the limit is {most}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Metadata is nested too deeply.
    #[error("the metadata is nested deeper than {most} levels")]
    TooDeep {
        /// The limit.
        most: usize,
    },
    /// Only plain messages can go to all members.
    #[error("a message of this kind goes to one recipient")]
    NotForAll,
    /// The team does not exist.
    #[error("there is no team {team}")]
    NoSuchTeam {
        /// The name.
        team: Name,
    },
    /// The team already exists.
    #[error("team {team} already exists")]
    TeamExists {
        /// The name.
        team: Name,
    },
    /// The member leads the team: it cannot become its lead, or no one could succeed it.
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
    /// Only the lead of the team may do that.
    #[error("only the lead of team {team} may do that")]
    NotLead {
        /// The team.
        team: Name,
    },
    /// Only its lead or its maker may do that.
    #[error("only the team lead may do that to {name}")]
    NotYours {
        /// The agent in question.
        name: String,
    },
    /// The request does not exist, was answered, or was put to someone else.
    #[error("no request {request} of that kind waits for your answer")]
    NotOpen {
        /// The request.
        request: MailId,
    },
    /// The question does not exist in the realm.
    #[error("there is no question {question}")]
    NoSuchQuestion {
        /// The question.
        question: QuestionId,
    },
    /// The question waits for no answer any more.
    #[error("question {question} is closed: it was {state}")]
    QuestionClosed {
        /// The question.
        question: QuestionId,
        /// What became of it.
        state: QuestionState,
    },
    /// The task does not exist.
    #[error("there is no task {id}")]
    NoSuchTask {
        /// The number.
        id: TaskId,
    },
    /// Someone else owns the task.
    #[error("task {id} is {by}'s")]
    AlreadyClaimed {
        /// The task.
        id: TaskId,
        /// The owner.
        by: String,
    },
    /// A task in progress needs an owner that is at work.
    #[error("{name} is not running")]
    NotRunning {
        /// The owner.
        name: String,
    },
    /// The task is completed.
    #[error("task {id} is completed")]
    AlreadyCompleted {
        /// The task.
        id: TaskId,
    },
    /// The task is blocked by others.
    #[error("task {id} waits for {}", list(.by))]
    Blocked {
        /// The task.
        id: TaskId,
        /// The tasks it waits for.
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
    /// The caller may not change the check of the task.
    #[error(
        "the check of task {id} can be changed only by the lead or, without a team, by the main \
         agent"
    )]
    CheckStands {
        /// The task.
        id: TaskId,
    },
    /// No task of the list is pending, not blocked, and either the caller's own or unowned and
    /// accepted by `takes`.
    #[error("there is nothing to claim")]
    NothingToClaim,
    /// It has been changed in the meantime.
    #[error("it has changed in the meantime; it is at version {version}")]
    Changed {
        /// The current version; 0 if there is none.
        version: u64,
    },
    /// The dependencies would form a cycle.
    #[error("the tasks would wait for each other: {}", list(.through))]
    Cycle {
        /// The cycle, beginning with the task that was to be changed.
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
