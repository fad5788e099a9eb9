//! What a front end has to write, before it is written.

use serde_json::Value;

use super::panel::Panel;
use crate::output::json_line;

/// Something to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputItem {
    /// On stdout, as it is.
    Out(String),
    /// On stderr, a line.
    Note(String),
    /// On stderr, a line that is nothing for programs.
    TerminalNote(String),
    /// At the foot of a terminal, in place of the one before.
    Panel(Box<Panel>),
}

/// Returns an object on a line of its own.
pub(crate) fn line(value: &Value) -> OutputItem {
    OutputItem::Out(json_line(value))
}
