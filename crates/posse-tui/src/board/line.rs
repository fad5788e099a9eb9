//! The line at the foot of the board that a person writes: a filter, a message, a task, a comment or the
//! name of an action.

use posse_protocol::{AgentId, ListId};

use super::review::{CommentId, CommentPlace};
use crate::edit::EditBuffer;
use crate::text::one_line;

/// What the line is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineUse {
    /// Words that agents must fit.
    Filter,
    /// A message to an agent, with its name.
    Message(AgentId, String),
    /// A new task of a list.
    NewTask(ListId),
    /// A comment, and what it is about.
    Comment(CommentId, CommentPlace),
    /// The name of an action, and what it is about.
    Palette,
}

/// The line at the foot.
pub(super) struct FootLine {
    pub(super) purpose: LineUse,
    pub(super) text: EditBuffer,
    /// The number of the name that is chosen from those that fit.
    pub(super) chosen: usize,
    /// When it opened by itself; none if the person opened it.
    pub(super) appeared_ms: Option<i64>,
}

impl FootLine {
    pub(super) fn new(purpose: LineUse, text: &str) -> Self {
        let mut buffer = EditBuffer::new();
        buffer.set(text);
        Self {
            purpose,
            text: buffer,
            chosen: 0,
            appeared_ms: None,
        }
    }

    /// Returns what is before the text.
    pub(super) fn label(&self) -> String {
        match &self.purpose {
            LineUse::Filter => "/".to_owned(),
            LineUse::Message(_, name) => format!("to {name}: "),
            LineUse::NewTask(_) => "new task: ".to_owned(),
            LineUse::Comment(_, place) => format!("{}: ", one_line(&place.label())),
            LineUse::Palette => ":".to_owned(),
        }
    }
}
