//! A reply while it arrives: what of it is final and can be printed, and what is still open.

use posse_protocol::Delta;
use ratatui_core::style::Style;
use ratatui_core::text::Line;

use crate::text::{MarkdownStream, tame, wrap};

/// Number of bytes that are kept of a reply whose beginning was missed.
const PARTIAL: usize = 4000;

/// The reply that an agent is giving.
#[derive(Default)]
pub(crate) struct ArrivingReply {
    stream: MarkdownStream,
    /// The text of its blocks so far.
    said: String,
    /// What earlier attempts have printed, while this one may still repeat it.
    void: Option<String>,
    /// True while a block of thinking arrives.
    is_thinking: bool,
    /// True while pieces may belong to a reply whose beginning was missed, or which is printed.
    has_gap: bool,
    /// The end of what has come meanwhile: it is shown until the whole reply is printed.
    partial: String,
    /// True if lines of the block that arrives are printed; a blank line goes before the first.
    continues: bool,
}

impl ArrivingReply {
    /// Adds a piece. Returns lines that are final.
    pub(crate) fn delta(&mut self, delta: &Delta, width: u16) -> Vec<Line<'static>> {
        match delta {
            Delta::Text(text) => self.text(text, width),
            Delta::Thinking(_) => {
                self.is_thinking = true;
                Vec::new()
            }
            Delta::BlockDone => self.block_done(width),
            Delta::Started { .. } | Delta::ToolUse { .. } | Delta::ToolInput(_) => Vec::new(),
        }
    }

    fn text(&mut self, text: &str, width: u16) -> Vec<Line<'static>> {
        if self.has_gap {
            self.add_partial(text);
            return Vec::new();
        }
        let text = without_returns(text);
        self.is_thinking = false;
        self.said.push_str(&text);
        let Some(printed) = &self.void else {
            self.stream.push(&text);
            return self.closed(width);
        };
        if printed.len() > self.said.len() && printed.starts_with(&self.said) {
            // It says the same again, which is on the screen already.
            return Vec::new();
        }
        let mut lines = Vec::new();
        match self.said.strip_prefix(printed) {
            Some(rest) => self.stream.replace_open(rest),
            None => {
                lines.push(self.begin_again());
                self.stream.push(&self.said);
            }
        }
        self.void = None;
        lines.extend(self.closed(width));
        lines
    }

    /// Returns true if a piece of thinking is of use: no piece before it was missed, and it repeats
    /// no earlier attempt.
    pub(crate) fn takes_thinking(&self) -> bool {
        !self.has_gap && self.void.as_deref().is_none_or(str::is_empty)
    }

    /// Ends a block of text.
    fn block_done(&mut self, width: u16) -> Vec<Line<'static>> {
        let was_thinking = std::mem::take(&mut self.is_thinking);
        if self.has_gap && !was_thinking && !self.partial.is_empty() {
            self.add_partial("\n\n");
        }
        if was_thinking || self.void.is_some() || self.has_gap {
            return Vec::new();
        }
        self.end_block(width)
    }

    /// The attempt failed: what it said is void, and another follows.
    pub(crate) fn cut_off(&mut self) {
        self.void = Some(self.printed().to_owned());
        self.said.clear();
        self.partial.clear();
        self.is_thinking = false;
    }

    /// Adds to what is shown of a reply whose beginning was missed.
    fn add_partial(&mut self, text: &str) {
        self.partial.push_str(text);
        let surplus = self.partial.len().saturating_sub(PARTIAL);
        let cut = self.partial.ceil_char_boundary(surplus);
        self.partial.drain(..cut);
    }

    /// Entries were read from elsewhere: pieces that come now are of no use until the next entry.
    pub(crate) fn miss(&mut self) {
        self.has_gap = true;
        self.partial.clear();
    }

    /// What comes now follows the entries that are printed.
    pub(crate) fn catch_up(&mut self) {
        self.has_gap = false;
        self.partial.clear();
    }

    /// Ends the reply, which has these blocks of text. Returns what was not printed.
    pub(crate) fn finish(&mut self, blocks: &[&str], width: u16) -> Vec<Line<'static>> {
        let blocks: Vec<String> = blocks.iter().map(|block| without_returns(block)).collect();
        let mut lines = Vec::new();
        let mut known = match blocks.concat().strip_prefix(self.printed()) {
            Some(_) => self.printed().len(),
            None => {
                lines.push(self.begin_again());
                0
            }
        };
        for block in &blocks {
            let (printed, rest) = block.split_at(known.min(block.len()));
            known -= printed.len();
            if !rest.is_empty() {
                self.stream.replace_open(rest);
                lines.extend(self.end_block(width));
            }
        }
        *self = Self::default();
        lines
    }

    /// Ends the reply, of which no more comes. Returns what was not printed.
    pub(crate) fn end(&mut self, width: u16) -> Vec<Line<'static>> {
        let lines = self.end_block(width);
        *self = Self::default();
        lines
    }

    /// Returns the lines that may still change.
    pub(crate) fn open(&self, width: u16) -> Vec<Line<'static>> {
        if self.partial.is_empty() {
            return self.stream.tail(width);
        }
        let text = format!("… {}", self.partial.trim());
        let lines = tame(&text);
        let lines = lines.lines().map(|line| Line::raw(line.to_owned()));
        lines.flat_map(|line| wrap(&line, width, 0)).collect()
    }

    /// Returns true if lines of a block are printed, and more of it may follow.
    pub(crate) fn is_within_block(&self) -> bool {
        self.stream.is_within_block()
    }

    /// Returns true if text arrives that is not printed.
    pub(crate) fn is_open(&self) -> bool {
        !self.stream.open_text().trim().is_empty()
    }

    /// Returns true if a blank line goes before the lines that may still change.
    pub(crate) fn begins_block(&self) -> bool {
        !self.continues
    }

    /// Returns true if lines of it are printed, of this attempt or the ones before it.
    pub(crate) fn is_printed(&self) -> bool {
        !self.printed().is_empty()
    }

    /// Returns the text whose lines are printed, of this attempt or the ones before it.
    fn printed(&self) -> &str {
        match &self.void {
            Some(printed) => printed,
            None => self
                .said
                .strip_suffix(self.stream.open_text())
                .unwrap_or_default(),
        }
    }

    /// Forgets what was printed, and returns the line that says so.
    fn begin_again(&mut self) -> Line<'static> {
        self.stream = MarkdownStream::default();
        self.continues = true;
        Line::styled("cut off; again:", Style::new().dim())
    }

    fn closed(&mut self, width: u16) -> Vec<Line<'static>> {
        let lines = self.stream.take_closed(width);
        self.spaced(lines)
    }

    fn end_block(&mut self, width: u16) -> Vec<Line<'static>> {
        let lines = self.stream.finish(width);
        let lines = self.spaced(lines);
        self.continues = false;
        lines
    }

    /// Puts a blank line before the first lines of a block.
    fn spaced(&mut self, mut lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        if !lines.is_empty() && !self.continues {
            self.continues = true;
            lines.insert(0, Line::default());
        }
        lines
    }
}

/// Returns the text with `\n` for every line end, so that all pieces of it count the same bytes.
fn without_returns(text: &str) -> String {
    text.replace('\r', "")
}
