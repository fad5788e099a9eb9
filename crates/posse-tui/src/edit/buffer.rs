//! The text under the fingers: what enters it, what leaves it, and the way back.
//!
//! Movement is in `motion`, killing in `kill`, wrapping in `rows`.

use super::chips::{Chip, Chips, Paste, Piece, is_block};
use super::clean::clean;
use super::draft::Draft;
use super::grapheme;
use super::undo::{EditKind, Step, UndoLog};
use std::ops::Range;

/// Bytes of text that a buffer holds, pasted blocks not counted.
pub const TEXT_LIMIT: usize = 1 << 20;

/// An editable text with a cursor that is always at a grapheme boundary.
#[derive(Debug, Clone, Default)]
pub struct EditBuffer {
    /// Typed text; each chip is one private-use character.
    pub(super) text: String,
    pub(super) cursor: usize,
    /// The column that `up` and `down` try to keep.
    pub(super) wanted_column: Option<usize>,
    pub(super) chips: Chips,
    pub(super) killed: String,
    /// The last operation killed, so the next kill adds to the same text.
    pub(super) killing: bool,
    undo: UndoLog,
}

impl EditBuffer {
    /// An empty buffer.
    pub fn new() -> EditBuffer {
        EditBuffer::default()
    }

    /// Returns the text with a private-use character for each chip. Offsets refer to this text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text as the user sees it, with labels in place of chips.
    pub fn shown(&self) -> String {
        self.chips.shown(&self.text)
    }

    /// Returns the text with each pasted block in place of its chip. Images appear as their labels.
    pub fn expanded(&self) -> String {
        self.chips.expanded(&self.text)
    }

    /// Returns the plain stretches and the chips in order.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        self.chips.pieces(&self.text)
    }

    /// Returns the numbers of the images in the text, in order.
    pub fn images(&self) -> Vec<u32> {
        let pieces = self.pieces().into_iter();
        let numbers = pieces.filter_map(|piece| match piece {
            Piece::Chip(Chip::Image { number, .. }) => Some(*number),
            _ => None,
        });
        numbers.collect()
    }

    /// Returns the offset of the cursor in [`text`](Self::text).
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns true if there is neither text nor a chip.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Puts text in at the cursor. Returns false, and changes nothing, if it does not fit.
    pub fn insert(&mut self, text: &str) -> bool {
        let text = clean(text);
        let typed = !text.is_empty() && grapheme::next(&text, 0) == text.len();
        let kind = if typed {
            EditKind::Typing
        } else {
            EditKind::Whole
        };
        self.splice(self.cursor..self.cursor, &text, kind)
    }

    /// Starts a new line at the cursor.
    pub fn newline(&mut self) -> bool {
        self.insert("\n")
    }

    /// Puts pasted text in, as a chip if it has more than 10 lines or 1,000 characters.
    pub fn paste(&mut self, text: &str) -> Paste {
        if !is_block(&super::clean::unify_line_ends(text)) {
            self.undo.seal();
            let fits = self.insert(text);
            self.undo.seal();
            return if fits { Paste::Inline } else { Paste::Refused };
        }
        if !self.chips.has_room(text.len()) && !self.make_room(text.len()) {
            return Paste::Refused;
        }
        let chip = self.chips.add_paste(text);
        self.insert_chip(chip).map_or(Paste::Refused, Paste::Chip)
    }

    /// Puts an image in, with what the user reads about it. Returns the number under which the
    /// caller keeps its data.
    pub fn insert_image(&mut self, about: &str) -> Option<u32> {
        let chip = self.chips.add_image(about);
        self.insert_chip(chip)
    }

    /// Replaces the bytes of `range`, widened to whole graphemes. Returns false if it does not fit.
    pub fn replace(&mut self, range: Range<usize>, text: &str) -> bool {
        let start = grapheme::floor(&self.text, range.start);
        let end = grapheme::ceil(&self.text, range.end).max(start);
        self.splice(start..end, &clean(text), EditKind::Whole)
    }

    /// Replaces everything. Returns false, and changes nothing, if it does not fit.
    ///
    /// The words of an image that was put in before are that image again: the text may be one that
    /// was taken out and comes back.
    pub fn set(&mut self, text: &str) -> bool {
        let text = self.chips.linked(&clean(text));
        self.splice(0..self.text.len(), &text, EditKind::Whole)
    }

    /// Empties the buffer and returns its text, with each pasted block in place of its chip.
    ///
    /// This cannot be undone. What was killed can still be yanked.
    pub fn take(&mut self) -> String {
        let text = self.expanded();
        let mut chips = std::mem::take(&mut self.chips);
        chips.retain_images(&self.killed);
        let killed = std::mem::take(&mut self.killed);
        *self = EditBuffer {
            chips,
            killed,
            ..EditBuffer::default()
        };
        text
    }

    /// Returns the content as it is now, to be given back by [`restore`](Self::restore).
    pub fn draft(&self) -> Draft {
        let chips = self.chips.of(&self.text);
        Draft {
            text: self.text.clone(),
            cursor: self.cursor,
            chips,
        }
    }

    /// Replaces everything by a draft, of this buffer or of another one. Returns false if the
    /// draft does not fit.
    ///
    /// Images keep their numbers: a draft with images belongs to the buffer it was made from.
    pub fn restore(&mut self, draft: &Draft) -> bool {
        let text = self.chips.adopt(&draft.text, &draft.chips);
        let fits = self.splice(0..self.text.len(), &text, EditKind::Whole);
        if fits {
            self.cursor = grapheme::ceil(&self.text, draft.cursor);
        }
        fits
    }

    /// Erases the grapheme or chip before the cursor. Returns false if there is none.
    pub fn backspace(&mut self) -> bool {
        let start = grapheme::previous(&self.text, self.cursor);
        self.erase(start..self.cursor)
    }

    /// Erases the grapheme or chip after the cursor (Ctrl-D). Returns false if there is none.
    pub fn delete(&mut self) -> bool {
        let end = grapheme::next(&self.text, self.cursor);
        self.erase(self.cursor..end)
    }

    /// Reverts the last step (Ctrl-_). Typing is reverted by words. Returns false if there is none.
    pub fn undo(&mut self) -> bool {
        self.settle();
        let Some(step) = self.undo.back() else {
            return false;
        };
        self.text
            .replace_range(step.inserted_range(), &step.removed);
        self.cursor = step.cursors.0;
        true
    }

    /// Repeats the step that was undone last. Returns false if there is none.
    pub fn redo(&mut self) -> bool {
        self.settle();
        let Some(step) = self.undo.forth() else {
            return false;
        };
        self.text
            .replace_range(step.removed_range(), &step.inserted);
        self.cursor = step.cursors.1;
        true
    }

    /// Ends what spans several operations: a group of typing, a kill, a wanted column.
    pub(super) fn settle(&mut self) {
        self.undo.seal();
        self.killing = false;
        self.wanted_column = None;
    }

    /// Replaces a range of whole graphemes by clean text. All edits pass here.
    pub(super) fn splice(&mut self, range: Range<usize>, inserted: &str, kind: EditKind) -> bool {
        self.killing = false;
        self.wanted_column = None;
        if self.text.len() - range.len() + inserted.len() > TEXT_LIMIT {
            return false;
        }
        if range.is_empty() && inserted.is_empty() {
            return true;
        }
        let removed = self.text[range.clone()].to_owned();
        self.text.replace_range(range.clone(), inserted);
        // The new neighbours can join to one grapheme, such as a letter before a combining mark.
        let cursor = grapheme::ceil(&self.text, range.start + inserted.len());
        let cursors = (self.cursor, cursor);
        self.cursor = cursor;
        let inserted = inserted.to_owned();
        self.undo.record(Step {
            at: range.start,
            removed,
            inserted,
            cursors,
            kind,
        });
        true
    }

    fn erase(&mut self, range: Range<usize>) -> bool {
        !range.is_empty() && self.splice(range, "", EditKind::Erasing)
    }

    fn insert_chip(&mut self, chip: Option<(char, u32)>) -> Option<u32> {
        let (character, number) = chip?;
        let text = character.to_string();
        let range = self.cursor..self.cursor;
        self.splice(range, &text, EditKind::Whole).then_some(number)
    }

    /// Gives up what only undo or yank could bring back, if `size` bytes then fit.
    fn make_room(&mut self, size: usize) -> bool {
        if !self.chips.of(&self.text).has_room(size) {
            return false;
        }
        self.chips.retain(&self.text);
        self.killed.clear();
        self.undo.clear();
        true
    }
}
