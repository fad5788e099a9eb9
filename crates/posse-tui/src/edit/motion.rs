//! Movement of the cursor by graphemes, words and lines.

use super::buffer::EditBuffer;
use super::grapheme::{self, Kind, kind};

/// Where the cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Over one grapheme or chip to the left.
    Left,
    /// Over one grapheme or chip to the right.
    Right,
    /// To the start of the word (Alt-B).
    WordLeft,
    /// To the end of the word (Alt-F).
    WordRight,
    /// To the start of the line (Ctrl-A).
    LineStart,
    /// To the end of the line (Ctrl-E).
    LineEnd,
    /// To the start of the text.
    BufferStart,
    /// To the end of the text.
    BufferEnd,
}

impl Motion {
    /// Returns the place to which it leads.
    pub(super) fn target(self, text: &str, cursor: usize) -> usize {
        match self {
            Self::Left => grapheme::previous(text, cursor),
            Self::Right => grapheme::next(text, cursor),
            Self::WordLeft => word_start(text, cursor),
            Self::WordRight => word_end(text, cursor),
            Self::LineStart => text[..cursor].rfind('\n').map_or(0, |at| at + 1),
            Self::LineEnd => {
                let end = text[cursor..].find('\n');
                end.map_or(text.len(), |at| cursor + at)
            }
            Self::BufferStart => 0,
            Self::BufferEnd => text.len(),
        }
    }
}

impl EditBuffer {
    /// Moves the cursor. Returns false if it is there already.
    pub fn go(&mut self, motion: Motion) -> bool {
        self.settle();
        let at = motion.target(&self.text, self.cursor);
        let moved = at != self.cursor;
        self.cursor = at;
        moved
    }
}

fn word_start(text: &str, cursor: usize) -> usize {
    let between = run_left(text, cursor, |found| found == Kind::Other);
    match kind_before(text, between) {
        None => between,
        Some(Kind::Chip) => grapheme::previous(text, between),
        Some(word) => run_left(text, between, |found| found == word),
    }
}

fn word_end(text: &str, cursor: usize) -> usize {
    let between = run_right(text, cursor, |found| found == Kind::Other);
    match kind_after(text, between) {
        None => between,
        Some(Kind::Chip) => grapheme::next(text, between),
        Some(word) => run_right(text, between, |found| found == word),
    }
}

fn run_left(text: &str, mut at: usize, accepts: impl Fn(Kind) -> bool) -> usize {
    while kind_before(text, at).is_some_and(&accepts) {
        at = grapheme::previous(text, at);
    }
    at
}

fn run_right(text: &str, mut at: usize, accepts: impl Fn(Kind) -> bool) -> usize {
    while kind_after(text, at).is_some_and(&accepts) {
        at = grapheme::next(text, at);
    }
    at
}

fn kind_before(text: &str, at: usize) -> Option<Kind> {
    (at > 0).then(|| kind(&text[grapheme::previous(text, at)..at]))
}

fn kind_after(text: &str, at: usize) -> Option<Kind> {
    (at < text.len()).then(|| kind(&text[at..]))
}
