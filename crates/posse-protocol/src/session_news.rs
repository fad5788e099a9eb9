//! What happens between the agents of a session, as viewers are told of it.

use crate::{MailId, MailKind, Name, RequestKind, TaskId, TaskStatus};

/// A task that is new or has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskUpdate {
    /// The team whose list has it; `None` for the session's own list.
    pub team: Option<Name>,
    /// Its number in the list.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub subject: String,
    /// How far it is.
    pub status: TaskStatus,
    /// Who does it, or is to do it.
    pub owner: Option<String>,
    /// What must be done before it and is not.
    pub waits_for: Vec<TaskId>,
}

/// A message that was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailUpdate {
    /// Its id.
    pub id: MailId,
    /// Its number in the recipient's inbox.
    pub number: u64,
    /// Who sent it.
    pub from: String,
    /// What it is.
    pub kind: MailKind,
    /// In a few words, for people.
    pub summary: String,
    /// The text; JSON, if the kind is another one than [`MailKind::Text`].
    pub body: String,
}

/// A request that waits for an answer, or waits no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestUpdate {
    /// Its id, by which it is answered.
    pub id: MailId,
    /// What is requested.
    pub kind: RequestKind,
    /// Who requests it.
    pub from: String,
    /// The reason, or the plan.
    pub text: String,
    /// False once it was answered or withdrawn.
    pub is_open: bool,
}
