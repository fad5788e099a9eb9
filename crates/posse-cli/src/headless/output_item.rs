//! Output of a front end, before it is written.

use serde_json::Value;

use super::panel::Panel;
use crate::output::json_line;

/// Something to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputItem {
    /// On stdout, as it is.
    Out(String),
    /// New lines of a reply on stdout, and its open end at the bottom of a terminal, replacing the
    /// previous one.
    Reply { lines: String, open: String },
    /// A line on stderr.
    Note(String),
    /// Lines on stderr, in their styles.
    Shown(String),
    /// A line on stderr, only if that is a terminal.
    TerminalNote(String),
    /// What is at work, at the foot of a terminal while nothing else is, replacing the previous one.
    LiveLine(String),
    /// A question on stderr, which a person answers.
    Ask(String),
    /// At the bottom of a terminal, replacing the previous one.
    Panel(Box<Panel>),
}

impl OutputItem {
    /// Returns true if it stays where it is written.
    pub(crate) fn is_printed(&self) -> bool {
        match self {
            Self::Reply { lines, .. } => !lines.is_empty(),
            Self::LiveLine(_) | Self::Panel(_) => false,
            _ => true,
        }
    }
}

/// Returns an object as a line.
pub(crate) fn line(value: &Value) -> OutputItem {
    OutputItem::Out(json_line(value))
}
