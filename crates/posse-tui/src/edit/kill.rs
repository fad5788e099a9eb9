//! Killing and yanking. Kills in a row add up to one text, as in readline.

use std::ops::Range;

use super::buffer::EditBuffer;
use super::grapheme;
use super::motion::Motion;
use super::undo::EditKind;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// To the end of the line, or the line end itself if the cursor is there (Ctrl-K).
    ToEnd,
    /// To the start of the line, or the line end before it if the cursor is there (Ctrl-U).
    ToStart,
    /// Back to the blank before the word (Ctrl-W).
    ToBlank,
    /// To the start of the word (Alt-Backspace).
    WordLeft,
    /// To the end of the word (Alt-D).
    WordRight,
}

impl Kill {
    /// Returns the part of the text.
    fn range(self, text: &str, cursor: usize) -> Range<usize> {
        let target = |motion: Motion| motion.target(text, cursor);
        match self {
            Self::ToEnd => match target(Motion::LineEnd) {
                end if end == cursor => cursor..target(Motion::Right),
                end => cursor..end,
            },
            Self::ToStart => match target(Motion::LineStart) {
                start if start == cursor => target(Motion::Left)..cursor,
                start => start..cursor,
            },
            Self::ToBlank => {
                let word_end = text[..cursor].trim_end().len();
                let word = text[..word_end].rfind(char::is_whitespace);
                let start = word.map_or(0, |at| grapheme::next(text, grapheme::floor(text, at)));
                start.min(cursor)..cursor
            }
            Self::WordLeft => target(Motion::WordLeft)..cursor,
            Self::WordRight => cursor..target(Motion::WordRight),
        }
    }
}

impl EditBuffer {
    /// Puts in what was killed last (Ctrl-Y). Returns false if that is nothing or does not fit.
    pub fn yank(&mut self) -> bool {
        if self.killed.is_empty() {
            return false;
        }
        let killed = self.killed.clone();
        self.splice(self.cursor..self.cursor, &killed, EditKind::Whole)
    }

    /// Kills something. Returns false if there is nothing to kill.
    pub fn kill(&mut self, kill: Kill) -> bool {
        let range = kill.range(&self.text, self.cursor);
        if range.is_empty() {
            self.settle();
            return false;
        }
        let text = self.text[range.clone()].to_owned();
        let (adds, before) = (self.killing, range.start < self.cursor);
        let killed = std::mem::take(&mut self.killed);
        self.killed = match (adds, before) {
            (false, _) => text,
            (true, true) => text + &killed,
            (true, false) => killed + &text,
        };
        self.splice(range, "", EditKind::Whole);
        self.killing = true;
        true
    }
}
