//! Killing and yanking. Kills in a row add up to one text, as in readline.

use super::buffer::EditBuffer;
use super::grapheme;
use super::undo::EditKind;
use std::ops::Range;

impl EditBuffer {
    /// Kills to the end of the line, or the line end itself if the cursor is there (Ctrl-K).
    /// Returns false if there is nothing to kill, as all kills do.
    pub fn kill_to_end(&mut self) -> bool {
        let end = match self.end_of_line() {
            end if end == self.cursor => grapheme::next(&self.text, end),
            end => end,
        };
        self.kill(self.cursor..end)
    }

    /// Kills to the start of the line, or the line end before it if the cursor is there (Ctrl-U).
    pub fn kill_to_start(&mut self) -> bool {
        let start = match self.start_of_line() {
            start if start == self.cursor => grapheme::previous(&self.text, start),
            start => start,
        };
        self.kill(start..self.cursor)
    }

    /// Kills back to the blank before the word (Ctrl-W).
    pub fn kill_to_blank(&mut self) -> bool {
        let word_end = self.text[..self.cursor].trim_end().len();
        let word = self.text[..word_end].rfind(char::is_whitespace);
        let start = word.map_or(0, |at| {
            grapheme::next(&self.text, grapheme::floor(&self.text, at))
        });
        self.kill(start.min(self.cursor)..self.cursor)
    }

    /// Kills to the start of the word (Alt-Backspace).
    pub fn kill_word_left(&mut self) -> bool {
        self.kill(self.word_start()..self.cursor)
    }

    /// Kills to the end of the word (Alt-D).
    pub fn kill_word_right(&mut self) -> bool {
        self.kill(self.cursor..self.word_end())
    }

    /// Puts in what was killed last (Ctrl-Y). Returns false if that is nothing or does not fit.
    pub fn yank(&mut self) -> bool {
        if self.killed.is_empty() {
            return false;
        }
        let killed = self.killed.clone();
        self.splice(self.cursor..self.cursor, &killed, EditKind::Whole)
    }

    fn kill(&mut self, range: Range<usize>) -> bool {
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
