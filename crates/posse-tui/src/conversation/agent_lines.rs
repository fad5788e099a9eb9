//! What one agent says and does, as lines to print where no screen is drawn.

use posse_protocol::{ContentBlock, Delta, Entry, EntryKind};
use ratatui_core::style::Style;
use ratatui_core::text::Line;

use super::calls::Calls;
use super::reply::ArrivingReply;
use super::transcript;
use crate::text::one_line;

/// The tool whose calls are agents, which have lines of their own.
const AGENT: &str = "Agent";

/// The lines of an agent: the same as in a conversation, except that a call is told of when it
/// begins, since nothing else shows that it runs.
///
/// One blank line is before each block, and none before the first.
#[derive(Default)]
pub struct AgentLines {
    reply: ArrivingReply,
    calls: Calls,
    /// Calls that a person was asked about: their changes are printed.
    asked: Vec<String>,
    last: LastPrinted,
}

/// What was printed last.
#[derive(Default, PartialEq, Eq)]
enum LastPrinted {
    #[default]
    Nothing,
    /// The beginning of this call.
    Call(String),
    Other,
}

impl AgentLines {
    /// Adds a piece of a reply. Returns the lines that are final.
    pub fn delta(&mut self, delta: &Delta, width: u16) -> Vec<Line<'static>> {
        let lines = self.reply.delta(delta, width);
        self.printed(lines)
    }

    /// Returns the lines of the reply that may still change.
    pub fn open(&self, width: u16) -> Vec<Line<'static>> {
        let mut lines = self.reply.open(width);
        if !lines.is_empty() && self.reply.begins_block() && self.last != LastPrinted::Nothing {
            lines.insert(0, Line::default());
        }
        lines
    }

    /// Returns true if lines of a block of the reply are printed, and more of it may follow.
    pub fn is_within_block(&self) -> bool {
        self.reply.is_within_block()
    }

    /// Returns true if text of the reply arrives that is not printed.
    pub fn is_open(&self) -> bool {
        self.reply.is_open()
    }

    /// An attempt failed. Returns true if lines of it are printed, which are void now.
    pub fn cut_off(&mut self) -> bool {
        let is_printed = self.reply.is_printed();
        self.reply.cut_off();
        is_printed
    }

    /// Returns what was not printed of a reply that is in the transcript.
    pub fn reply(&mut self, entry: &Entry, width: u16) -> Vec<Line<'static>> {
        if entry.kind != EntryKind::Reply {
            return Vec::new();
        }
        transcript::note_calls(entry, &mut self.calls);
        let lines = self.reply.finish(&transcript::reply_texts(entry), width);
        self.printed(lines)
    }

    /// A call begins. Returns the line that says so.
    pub fn call_started(&mut self, id: &str, tool: &str, title: &str) -> Vec<Line<'static>> {
        self.calls.named(id, tool, title);
        if tool == AGENT {
            return Vec::new();
        }
        let line = Line::styled(format!("→ {}", one_line(title)), Style::new().dim());
        // Calls that begin together stand together.
        let lines = match self.last {
            LastPrinted::Call(_) => vec![line],
            _ => vec![Line::default(), line],
        };
        let lines = self.printed(lines);
        self.last = LastPrinted::Call(id.to_owned());
        lines
    }

    /// Returns the results of calls that are in the transcript. A call that did not begin was told
    /// of already: it was denied.
    pub fn results(&mut self, entry: &Entry, width: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for block in &entry.message.content {
            let ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            } = block
            else {
                continue;
            };
            let known = self.calls.take(tool_use_id);
            let Some(call) = known.filter(|call| call.title.is_some()) else {
                continue;
            };
            if call.tool == AGENT && !is_error {
                continue;
            }
            let is_under_call = self.last == LastPrinted::Call(tool_use_id.clone());
            let mut shown = Vec::new();
            if *is_error || !is_under_call {
                shown.extend((!is_under_call).then(Line::default));
                shown.push(transcript::call_head(Some(&call), *is_error));
            }
            if *is_error || !self.asked.contains(tool_use_id) || !transcript::is_change(&call) {
                let answered = (content.as_slice(), *is_error);
                let short = transcript::ShownOutput::Short;
                shown.extend(transcript::answer(Some(&call), answered, short, width));
            }
            lines.extend(self.printed(shown));
        }
        lines
    }

    /// A person is asked about a call, and sees the change that it would make.
    pub fn asked(&mut self, call: &str) {
        self.asked.push(call.to_owned());
        self.interrupted();
    }

    /// Something else was printed.
    pub fn interrupted(&mut self) {
        self.last = LastPrinted::Other;
    }

    /// The run is over. Returns what was not printed.
    pub fn end(&mut self, width: u16) -> Vec<Line<'static>> {
        self.calls.clear();
        self.asked.clear();
        let lines = self.reply.end(width);
        self.printed(lines)
    }

    /// Returns the lines as they are printed: without a blank one before everything else.
    fn printed(&mut self, mut lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        if lines.is_empty() {
            return lines;
        }
        if self.last == LastPrinted::Nothing && lines.first().is_some_and(is_blank) {
            lines.remove(0);
        }
        self.last = LastPrinted::Other;
        lines
    }
}

fn is_blank(line: &Line<'_>) -> bool {
    line.spans.is_empty()
}
