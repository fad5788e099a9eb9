//! Movement of the cursor by graphemes, words and lines.

use super::buffer::EditBuffer;
use super::grapheme::{self, Kind, kind};

impl EditBuffer {
    /// Moves over one grapheme or chip to the left. Returns false at the start.
    pub fn left(&mut self) -> bool {
        self.move_to(grapheme::previous(&self.text, self.cursor))
    }

    /// Moves over one grapheme or chip to the right. Returns false at the end.
    pub fn right(&mut self) -> bool {
        self.move_to(grapheme::next(&self.text, self.cursor))
    }

    /// Moves to the start of the word (Alt-B). Returns false at the start.
    pub fn word_left(&mut self) -> bool {
        self.move_to(self.word_start())
    }

    /// Moves to the end of the word (Alt-F). Returns false at the end.
    pub fn word_right(&mut self) -> bool {
        self.move_to(self.word_end())
    }

    /// Moves to the start of the line (Ctrl-A). Returns false if the cursor is there already.
    pub fn line_start(&mut self) -> bool {
        self.move_to(self.start_of_line())
    }

    /// Moves to the end of the line (Ctrl-E). Returns false if the cursor is there already.
    pub fn line_end(&mut self) -> bool {
        self.move_to(self.end_of_line())
    }

    /// Moves to the start of the text. Returns false if the cursor is there already.
    pub fn buffer_start(&mut self) -> bool {
        self.move_to(0)
    }

    /// Moves to the end of the text. Returns false if the cursor is there already.
    pub fn buffer_end(&mut self) -> bool {
        self.move_to(self.text.len())
    }

    pub(super) fn start_of_line(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    pub(super) fn end_of_line(&self) -> usize {
        self.text[self.cursor..]
            .find('\n')
            .map_or(self.text.len(), |at| self.cursor + at)
    }

    pub(super) fn word_start(&self) -> usize {
        let between = self.run_left(self.cursor, |found| found == Kind::Other);
        match self.kind_before(between) {
            None => between,
            Some(Kind::Chip) => grapheme::previous(&self.text, between),
            Some(word) => self.run_left(between, |found| found == word),
        }
    }

    pub(super) fn word_end(&self) -> usize {
        let between = self.run_right(self.cursor, |found| found == Kind::Other);
        match self.kind_after(between) {
            None => between,
            Some(Kind::Chip) => grapheme::next(&self.text, between),
            Some(word) => self.run_right(between, |found| found == word),
        }
    }

    fn run_left(&self, mut at: usize, accepts: impl Fn(Kind) -> bool) -> usize {
        while self.kind_before(at).is_some_and(&accepts) {
            at = grapheme::previous(&self.text, at);
        }
        at
    }

    fn run_right(&self, mut at: usize, accepts: impl Fn(Kind) -> bool) -> usize {
        while self.kind_after(at).is_some_and(&accepts) {
            at = grapheme::next(&self.text, at);
        }
        at
    }

    fn kind_before(&self, at: usize) -> Option<Kind> {
        (at > 0).then(|| kind(&self.text[grapheme::previous(&self.text, at)..at]))
    }

    fn kind_after(&self, at: usize) -> Option<Kind> {
        (at < self.text.len()).then(|| kind(&self.text[at..]))
    }

    fn move_to(&mut self, at: usize) -> bool {
        self.settle();
        let moved = at != self.cursor;
        self.cursor = at;
        moved
    }
}
