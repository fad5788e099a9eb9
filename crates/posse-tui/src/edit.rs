//! The prompt editor: text, caret, undo, pasted blocks, history, completion.
//!
//! Everything here is pure. Files, the clock and the terminal belong to the callers, and so do the
//! keys: each method names the readline key it is meant for, the keymap decides.

mod buffer;
mod chips;
mod clean;
pub mod complete;
mod draft;
pub mod fuzzy;
mod grapheme;
mod history;
mod kill;
#[cfg(test)]
mod manners;
mod motion;
#[cfg(test)]
mod random;
mod rows;
mod undo;

pub use buffer::{EditBuffer, TEXT_LIMIT};
pub use chips::{Chip, PASTE_LIMIT, Paste, Piece};
pub use complete::{Prefix, Target};
pub use draft::Draft;
pub use history::PromptHistory;
pub use kill::Kill;
pub use motion::Motion;
pub use rows::{Layout, RowSpan, VisualRow};
