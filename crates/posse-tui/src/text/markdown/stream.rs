//! Markdown that is still arriving.

use ratatui_core::text::Line;

use super::pace::{Extent, Limits, Pace};

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
    /// Bytes of `open` that were searched without success.
    searched: usize,
    pace: Pace,
}

impl MarkdownStream {
    /// Returns an empty stream with limits of its own.
    pub(super) fn with_limits(limits: Limits) -> Self {
        Self {
            pace: Pace::new(limits),
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

    /// Returns true if there is no text that was not taken.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes the lines that are final. Returns at once if no complete line arrived since the last
    /// call.
    ///
    /// The width should be the same in all calls: lines that were taken keep the one they had.
    pub fn take_closed(&mut self, width: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if !self.is_worth_a_search() {
            return lines;
        }
        let source = &self.open[..self.complete];
        let taken = self.pace.walk(source, Extent::Growing, width, &mut lines);
        self.open.drain(..taken);
        self.complete -= taken;
        self.searched = self.complete;
        lines
    }

    /// Returns the lines of what is not taken, as if nothing followed.
    pub fn tail(&self, width: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut pace = self.pace.clone();
        pace.walk(&self.open, Extent::Whole, width, &mut lines);
        lines
    }

    /// Takes all that is left. The stream is empty afterwards and can be used for the next text.
    pub fn finish(&mut self, width: u16) -> Vec<Line<'static>> {
        let lines = self.tail(width);
        *self = Self::with_limits(self.pace.limits());
        lines
    }

    /// Returns true if new lines could close something.
    ///
    /// Parsing a long open block again for each of its lines would take quadratic time. It waits
    /// until the block has grown by an eighth, or until a line looks as if it begins another block.
    fn is_worth_a_search(&self) -> bool {
        let new = &self.open[self.searched..self.complete];
        if new.is_empty() {
            return false;
        }
        if self.pace.is_in_fence()
            || self.searched < self.pace.limits().parsed
            || new.len() >= self.searched / 8
        {
            return true;
        }
        let before = &self.open[..self.searched];
        let after_blank = before.ends_with("\n\n") && begins_block(new);
        after_blank
            || new
                .match_indices("\n\n")
                .any(|(at, _)| begins_block(&new[at + 2..]))
    }
}

/// Returns true if a line after a blank one does not continue a list or a quote.
fn begins_block(text: &str) -> bool {
    let continues =
        |first: char| first.is_whitespace() || first.is_ascii_digit() || "-*+>".contains(first);
    text.chars().next().is_some_and(|first| !continues(first))
}
