//! Markdown that is still arriving.

use ratatui_core::text::Line;

use super::cursor::{Cursor, Extent, Limits};

/// A Markdown text that arrives in pieces.
///
/// Lines that [`take_closed`](Self::take_closed) returns are final: nothing that arrives later
/// changes them. All lines taken so far and the [`tail`](Self::tail) are what
/// [`render`](super::render) makes of the text so far.
#[derive(Clone, Debug, Default)]
pub struct MarkdownStream {
    /// What is not taken yet.
    open: String,
    /// True if the text ended with `\r`, which may be the half of a line end.
    has_return: bool,
    /// Bytes of `open` up to the end of its last complete line.
    complete: usize,
    /// Bytes of `open` that were complete when `take_closed` was called last.
    seen: usize,
    /// Bytes of `open` that were parsed without success.
    parsed: usize,
    cursor: Cursor,
}

impl MarkdownStream {
    /// Returns an empty stream with limits of its own.
    pub(super) fn with_limits(limits: Limits) -> Self {
        Self {
            cursor: Cursor::new(limits),
            ..Self::default()
        }
    }

    /// Adds text.
    pub fn push(&mut self, text: &str) {
        let from = self.open.len();
        for piece in text.split_inclusive('\r') {
            if self.has_return && !piece.starts_with('\n') {
                // A lone return is no line end on a terminal, and Markdown must not see one.
                self.open.extend('\r'.escape_unicode());
            }
            self.has_return = piece.ends_with('\r');
            self.open
                .push_str(piece.strip_suffix('\r').unwrap_or(piece));
        }
        if let Some(newline) = self.open[from..].rfind('\n') {
            self.complete = from + newline + 1;
        }
    }

    /// Returns the text that was not taken.
    pub fn open_text(&self) -> &str {
        &self.open
    }

    /// Puts another text in place of the one that was not taken.
    pub fn replace_open(&mut self, text: &str) {
        self.open.clear();
        self.has_return = false;
        (self.complete, self.seen, self.parsed) = (0, 0, 0);
        self.push(text);
    }

    /// Returns true if there is no text that was not taken.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns true if a block has begun of which lines were taken, and more may follow.
    pub fn is_within_block(&self) -> bool {
        self.cursor.is_within_block()
    }

    /// Takes the lines that are final. Returns at once if no complete line arrived since the last
    /// call.
    ///
    /// The width should be the same in all calls: lines that were taken keep the one they had.
    pub fn take_closed(&mut self, width: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let is_worth_parsing = self.is_worth_parsing();
        self.seen = self.complete;
        if !is_worth_parsing {
            return lines;
        }
        let source = &self.open[..self.complete];
        let taken = self.cursor.walk(source, Extent::Growing, width, &mut lines);
        self.open.drain(..taken);
        self.complete -= taken;
        self.seen = self.complete;
        self.parsed = self.complete;
        lines
    }

    /// Returns the lines of what is not taken, as if nothing followed.
    pub fn tail(&self, width: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut cursor = self.cursor.clone();
        cursor.walk(&self.open, Extent::Whole, width, &mut lines);
        lines
    }

    /// Takes all that is left. The stream is empty afterwards and can be used for the next text.
    pub fn finish(&mut self, width: u16) -> Vec<Line<'static>> {
        let lines = self.tail(width);
        *self = Self::with_limits(self.cursor.limits());
        lines
    }

    /// Returns true if new lines could close something.
    ///
    /// Parsing a long open block again for each of its lines would take quadratic time. It waits
    /// until the block has grown by a quarter, or until a line looks as if it begins another block.
    fn is_worth_parsing(&self) -> bool {
        if self.seen == self.complete {
            return false;
        }
        let is_small = self.parsed < self.cursor.limits().parsed;
        if self.cursor.is_in_fence() || is_small || self.complete >= self.parsed + self.parsed / 4 {
            return true;
        }
        // The two bytes before may be the blank line that the first new line follows.
        let from = self.open.floor_char_boundary(self.seen.saturating_sub(2));
        let new = &self.open[from..self.complete];
        if new.ends_with("\n\n") && begins_block(&self.open) {
            return true;
        }
        let mut blanks = new.match_indices("\n\n");
        blanks.any(|(at, blank)| begins_block(&new[at + blank.len()..]))
    }
}

/// Returns true if a line after a blank one does not continue a list or a quote.
fn begins_block(text: &str) -> bool {
    let continues =
        |first: char| first.is_whitespace() || first.is_ascii_digit() || "-*+>".contains(first);
    text.chars().next().is_some_and(|first| !continues(first))
}
