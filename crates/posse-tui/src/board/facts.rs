//! What a board is told: agents, tasks, messages, questions, costs and worktrees, as somebody else has
//! read them.

use posse_protocol::{
    AgentId, Cost, FileDiff, ListId, MailId, MailKind, Purpose, Question, Sender, Task, Usage,
};

use crate::conversation::Sign;
use crate::text::one_line;

/// Number of characters that are kept of a text that is shown in a column.
const COLUMN: usize = 300;
/// Number of characters of a commit's name.
const COMMIT: usize = 7;

/// What is shown on a board: agents of which sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of one session.
    Session,
    /// Those of all sessions of the directory.
    Directory,
    /// Those of all sessions of the store.
    Store,
}

impl Scope {
    /// All of them, from narrow to wide.
    pub const ALL: [Self; 3] = [Self::Session, Self::Directory, Self::Store];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Directory => "directory",
            Self::Store => "store",
        }
    }

    /// Returns the next one; the narrowest after the widest.
    pub fn next(self) -> Self {
        match self {
            Self::Session => Self::Directory,
            Self::Directory => Self::Store,
            Self::Store => Self::Session,
        }
    }
}

/// An agent as a board shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardAgent {
    /// Its ID.
    pub agent: AgentId,
    /// The main agent of its session.
    pub session: AgentId,
    /// Who started it; none for the main agent of a session.
    pub parent: Option<AgentId>,
    /// What it is called. The name of a main agent is that of its session.
    pub name: String,
    /// What it does, in a line: its task, its call, what it waits for.
    pub doing: String,
    /// Its state.
    pub sign: Sign,
    /// When it made its last step, in milliseconds of Unix time.
    pub changed_ms: i64,
    /// Its branch or directory.
    pub place: String,
    /// The name of its model.
    pub model: String,
    /// Number of messages that wait for it.
    pub waiting_mail: u64,
}

impl BoardAgent {
    /// Returns the agent with texts that are safe to show.
    pub(super) fn tamed(mut self) -> Self {
        for text in [
            &mut self.name,
            &mut self.doing,
            &mut self.place,
            &mut self.model,
        ] {
            *text = column(text);
        }
        self
    }
}

/// A list of tasks: a team's, or the session's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardTaskList {
    /// Which one.
    pub list: ListId,
    /// What it is called: the team, or the session.
    pub label: String,
    /// Its tasks, by number.
    pub tasks: Vec<Task>,
}

/// A message from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardMail {
    /// Its ID.
    pub id: MailId,
    /// Who sent it.
    pub from: Sender,
    /// Who gets it.
    pub to: AgentId,
    /// What the recipient is called.
    pub to_name: String,
    /// What it is.
    pub kind: MailKind,
    /// In a few words.
    pub summary: String,
    /// The text.
    pub body: String,
    /// When it was sent, in milliseconds of Unix time.
    pub at_ms: i64,
    /// True until the recipient's model has seen it.
    pub is_waiting: bool,
}

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardQuestion {
    /// Who asks.
    pub agent: AgentId,
    /// The main agent of its session.
    pub session: AgentId,
    /// What is asked.
    pub question: Question,
    /// When it was asked, in milliseconds of Unix time.
    pub asked_ms: i64,
}

/// What an agent has spent on a model for a purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostRow {
    /// Who.
    pub agent: AgentId,
    /// What it is called.
    pub name: String,
    /// The model.
    pub model: String,
    /// What its calls were made for.
    pub purpose: Purpose,
    /// What they used.
    pub usage: Usage,
    /// Number of tokens that were in the provider's cache once and had to be read anew.
    pub missed: u64,
    /// What they cost; none if a price is not known.
    pub cost: Option<Cost>,
}

/// A worktree of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardWorktree {
    /// Whose it is.
    pub agent: AgentId,
    /// Its branch.
    pub branch: String,
    /// The commit that it was made from.
    pub base: String,
    /// True if its agent belongs to a process that lives.
    pub is_live: bool,
}

/// How much of a worktree differs from its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreeChanges {
    /// As it was read.
    Read {
        /// Number of commits since its base.
        commits: u64,
        /// Number of files that differ, committed or not.
        files: u64,
        /// Number of lines that were added.
        added: u64,
        /// Number of lines that were removed.
        removed: u64,
    },
    /// It could not be read, and why.
    Unreadable(String),
}

/// All that differs in a worktree from its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardReview {
    /// Whose it is.
    pub agent: AgentId,
    /// Its branch.
    pub branch: String,
    /// The commit that it was made from.
    pub base: String,
    /// The files that differ.
    pub files: Vec<ReviewFile>,
    /// Number of files that are not among them, since there are too many.
    pub left_out: u64,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewFile {
    /// The change.
    pub change: FileDiff,
    /// What lines do not say: that it was deleted, or is not text.
    pub note: Option<String>,
}

/// Returns the first characters of a commit's name.
pub(super) fn short_commit(name: &str) -> String {
    name.chars().take(COMMIT).collect()
}

/// Returns text for a column: one line, not too long, and safe to show.
pub(super) fn column(text: &str) -> String {
    let end = text.char_indices().nth(COLUMN).map(|(at, _)| at);
    one_line(text.get(..end.unwrap_or(text.len())).unwrap_or_default())
}
