//! A reply while it arrives: what of it is final and can be printed, and what is still open.

use ratatui_core::style::Style;
use ratatui_core::text::Line;

use crate::text::MarkdownStream;

/// The reply that an agent is giving.
#[derive(Default)]
pub(crate) struct ArrivingReply {
    stream: MarkdownStream,
    /// The text of its blocks so far.
    said: String,
    /// The text of an attempt that broke off, which the next one may repeat.
    void: Option<String>,
    /// Number of bytes of thinking, while it thinks.
    thinking: usize,
    /// True if something was printed already: a blank line goes before what follows.
    has_printed: bool,
}

impl ArrivingReply {
    /// Adds text. Returns lines that are final.
    pub(crate) fn text(&mut self, text: &str, width: u16) -> Vec<Line<'static>> {
        self.thinking = 0;
        self.said.push_str(text);
        let Some(void) = &self.void else {
            self.stream.push(text);
            return self.closed(width);
        };
        if void.starts_with(&self.said) {
            // It says the same again, which is on the screen already.
            return Vec::new();
        }
        let mut lines = vec![Line::styled("cut off; again:", Style::new().dim())];
        self.void = None;
        self.stream = MarkdownStream::default();
        self.stream.push(&self.said);
        lines.extend(self.closed(width));
        lines
    }

    /// Adds thinking, which is not shown.
    pub(crate) fn thinks(&mut self, text: &str) {
        self.thinking += text.len();
    }

    /// Ends a block of text.
    pub(crate) fn block_done(&mut self, width: u16) -> Vec<Line<'static>> {
        if self.thinking > 0 || self.void.is_some() || self.stream.is_empty() {
            self.thinking = 0;
            return Vec::new();
        }
        let lines = self.stream.finish(width);
        self.spaced(lines)
    }

    /// The attempt failed: what it said is void, and another follows.
    pub(crate) fn cut_off(&mut self) {
        let said = std::mem::take(&mut self.said);
        // An attempt may break off before it has said all that the one before it did.
        let longest = self.void.take().filter(|void| void.starts_with(&said));
        self.void = Some(longest.unwrap_or(said)).filter(|void| !void.is_empty());
        self.thinking = 0;
    }

    /// Ends the reply, which says `whole`. Returns what was not printed.
    pub(crate) fn finish(&mut self, whole: &str, width: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let known = self.void.take().unwrap_or_default();
        if known.is_empty() && whole == self.said || known == whole {
            lines.extend(self.stream.finish(width));
        } else if let Some(rest) = whole.strip_prefix(&self.said).filter(|_| known.is_empty()) {
            self.stream.push(rest);
            lines.extend(self.stream.finish(width));
        } else {
            lines.push(Line::styled("cut off; again:", Style::new().dim()));
            self.stream = MarkdownStream::default();
            self.stream.push(whole);
            lines.extend(self.stream.finish(width));
        }
        let lines = self.spaced(lines);
        *self = Self::default();
        lines
    }

    /// Returns the lines that may still change.
    pub(crate) fn open(&self, width: u16) -> Vec<Line<'static>> {
        self.stream.tail(width)
    }

    /// Returns true if the agent thinks and says nothing.
    pub(crate) fn is_thinking(&self) -> bool {
        self.thinking > 0
    }

    fn closed(&mut self, width: u16) -> Vec<Line<'static>> {
        let lines = self.stream.take_closed(width);
        self.spaced(lines)
    }

    /// Puts a blank line before the first lines of a reply.
    fn spaced(&mut self, mut lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        if !lines.is_empty() && !self.has_printed {
            self.has_printed = true;
            lines.insert(0, Line::default());
        }
        lines
    }
}
