//! What a terminal shows of an agent at work: replies while they arrive, calls, and their results.

use posse_protocol::{ContentBlock, Delta, Entry};
use posse_tui::conversation::AgentLines;
use posse_tui::terminal::styled_text;
use posse_tui::text::render;

use crate::headless::output_item::OutputItem;
use crate::output::columns;

/// Where replies are shown, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyView {
    /// A pipe or a file gets the last reply as it is, once it is final.
    Plain,
    /// A terminal gets the last reply only: other agents are shown until then.
    Last,
    /// A terminal gets replies while they arrive. Their open end is redrawn in place.
    Arriving,
    /// A terminal gets replies while they arrive, paragraph by paragraph. Nothing is redrawn,
    /// because a person types below.
    Printed,
}

/// An agent whose work is shown.
pub(super) struct LiveReply {
    lines: Box<AgentLines>,
    draws_open: bool,
    /// The open end that is drawn.
    open: String,
    /// True if the run has said something.
    has_spoken: bool,
}

impl LiveReply {
    /// Returns an agent that has done nothing yet, if replies are shown while they arrive.
    pub(super) fn new(view: ReplyView) -> Option<Self> {
        let draws_open = match view {
            ReplyView::Plain | ReplyView::Last => return None,
            ReplyView::Arriving => true,
            ReplyView::Printed => false,
        };
        Some(Self {
            lines: Box::default(),
            draws_open,
            open: String::new(),
            has_spoken: false,
        })
    }

    /// Adds a piece of a reply.
    pub(super) fn delta(&mut self, delta: &Delta) -> Option<OutputItem> {
        self.has_spoken |= matches!(delta, Delta::Text(_));
        let lines = self.lines.delta(delta, columns());
        self.item(styled_text(&lines))
    }

    /// Shows the rest of a reply that is in the transcript.
    pub(super) fn reply(&mut self, entry: &Entry) -> Option<OutputItem> {
        let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text { .. });
        self.has_spoken |= entry.message.content.iter().any(is_text);
        let lines = self.lines.reply(entry, columns());
        self.item(styled_text(&lines))
    }

    /// Shows the rest of a reply of which no more comes.
    pub(super) fn end(&mut self) -> Option<OutputItem> {
        let lines = self.lines.end(columns());
        self.item(styled_text(&lines))
    }

    /// Shows the answer of a run that no reply has shown: another agent gave it.
    pub(super) fn answer(&mut self, text: &str) -> Option<OutputItem> {
        if std::mem::take(&mut self.has_spoken) || text.trim().is_empty() {
            return None;
        }
        self.lines.interrupted();
        self.item(format!("\n{}", styled_text(&render(text, columns()))))
    }

    /// An attempt failed. Returns true if parts of it stay on the terminal.
    pub(super) fn cut_off(&mut self) -> bool {
        self.lines.cut_off()
    }

    /// Shows that a call begins.
    pub(super) fn call_started(&mut self, id: &str, tool: &str, title: &str) -> Option<OutputItem> {
        shown(styled_text(&self.lines.call_started(id, tool, title)))
    }

    /// Shows the results of calls.
    pub(super) fn results(&mut self, entry: &Entry) -> Option<OutputItem> {
        shown(styled_text(&self.lines.results(entry, columns())))
    }

    /// Returns true if a block of the reply arrives.
    pub(super) fn is_arriving(&self) -> bool {
        self.lines.is_within_block() || self.lines.is_open()
    }

    /// Returns true if what is printed last is whole: no line of it follows.
    pub(super) fn is_between_blocks(&self) -> bool {
        !self.lines.is_within_block()
    }

    /// A person is asked about a call, and sees the change that it would make.
    pub(super) fn asked(&mut self, call: &str) {
        self.lines.asked(call);
    }

    /// Something else is written.
    pub(super) fn interrupted(&mut self) {
        self.lines.interrupted();
    }

    /// Returns new lines with the open end below them, if either has changed.
    fn item(&mut self, lines: String) -> Option<OutputItem> {
        let open = match self.draws_open {
            true => styled_text(&self.lines.open(columns())),
            false => String::new(),
        };
        if lines.is_empty() && open == self.open {
            return None;
        }
        self.open.clone_from(&open);
        Some(OutputItem::Reply { lines, open })
    }
}

fn shown(lines: String) -> Option<OutputItem> {
    (!lines.is_empty()).then_some(OutputItem::Shown(lines))
}
