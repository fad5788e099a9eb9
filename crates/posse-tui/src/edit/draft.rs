//! A draft: the content of a buffer at one moment, with its chips and its cursor.

use super::chips::{Chips, Piece};
use super::clean::clean;

/// What one buffer held at one moment. Cheap to keep: pasted blocks are shared, not copied.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub(super) text: String,
    pub(super) cursor: usize,
    pub(super) chips: Chips,
}

impl Draft {
    /// A draft of plain text, with the cursor at its end.
    pub fn new(text: &str) -> Draft {
        let text = clean(text).into_owned();
        Draft {
            cursor: text.len(),
            text,
            chips: Chips::default(),
        }
    }

    /// Returns true if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text with each pasted block in place of its chip.
    pub fn expanded(&self) -> String {
        self.chips.expanded(&self.text)
    }

    /// Returns the text as the user sees it, with labels in place of chips.
    pub fn shown(&self) -> String {
        self.chips.shown(&self.text)
    }

    /// Returns the plain stretches and the chips in order, for example to write them to a file.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        self.chips.pieces(&self.text)
    }
}
