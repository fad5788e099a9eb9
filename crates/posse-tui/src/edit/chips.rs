//! Chips: pasted blocks and images, each one private-use character in the buffer.
//!
//! Nobody can type or paste such a character ([`clean`](super::clean) drops them), so the words of
//! a chip, typed by hand, stay words.

use super::clean::unify_line_ends;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Bytes of pasted blocks that one buffer keeps, all together.
pub const PASTE_LIMIT: usize = 10 << 20;
/// A paste of more lines becomes a chip.
const INLINE_LINES: usize = 10;
/// A paste of more characters becomes a chip.
const INLINE_CHARACTERS: usize = 1_000;
/// Number of characters that are shown about an image.
const ABOUT: usize = 48;
/// Number of images whose chips are kept when they stand in no text.
const IMAGES: u32 = 32;
/// The first and the last character that stand for chips: the last private-use plane.
const FIRST: char = '\u{100000}';
const LAST: char = '\u{10FFFD}';

/// Something that is kept beside the text and shown in it as one unit.
#[derive(Debug, Clone)]
pub enum Chip {
    /// A pasted block.
    Paste {
        /// Counts the blocks of a prompt, from 1.
        number: u32,
        /// The block, with `\n` line ends and otherwise as it was pasted.
        text: Arc<str>,
    },
    /// An image, whose data the caller holds under the number.
    Image {
        /// Counts the images of a buffer, from 1. A number is not used twice.
        number: u32,
        /// What the user reads about it, such as `shot.png 120 KB`.
        about: Arc<str>,
    },
}

impl Chip {
    /// The words that the user sees: `[paste 1: 214 lines]`, `[image 1: shot.png 120 KB]`.
    pub fn label(&self) -> String {
        match self {
            Chip::Paste { number, text } => match text.lines().count() {
                lines if lines > INLINE_LINES => format!("[paste {number}: {lines} lines]"),
                _ => format!("[paste {number}: {} characters]", text.chars().count()),
            },
            Chip::Image { number, about } => format!("[image {number}: {about}]"),
        }
    }

    fn size(&self) -> usize {
        match self {
            Chip::Paste { text, .. } => text.len(),
            Chip::Image { .. } => 0,
        }
    }

    fn is_same(&self, other: &Chip) -> bool {
        match (self, other) {
            (Chip::Paste { text: one, .. }, Chip::Paste { text: two, .. }) => Arc::ptr_eq(one, two),
            (Chip::Image { number: one, .. }, Chip::Image { number: two, .. }) => one == two,
            _ => false,
        }
    }
}

/// What became of a paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paste {
    /// It stands in the text.
    Inline,
    /// It is kept as the chip with this number.
    Chip(u32),
    /// It is too large, and nothing was changed.
    Refused,
}

/// A stretch of a buffer: plain text or one chip.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    /// Text as it was typed.
    Text(&'a str),
    /// A chip.
    Chip(&'a Chip),
}

/// Returns true if `character` stands for a chip.
pub(super) fn is_chip(character: char) -> bool {
    (FIRST..=LAST).contains(&character)
}

/// Returns true if a paste of `text` becomes a chip.
pub(super) fn is_block(text: &str) -> bool {
    text.lines().nth(INLINE_LINES).is_some() || text.chars().nth(INLINE_CHARACTERS).is_some()
}

/// The chips of one buffer, by the characters that stand for them.
///
/// A chip that was erased stays until room is needed, since undo can bring it back.
#[derive(Debug, Clone, Default)]
pub(super) struct Chips {
    held: BTreeMap<char, Entry>,
    /// Images so far. Their numbers are not used again, since the caller holds data under them.
    images: u32,
}

#[derive(Debug, Clone)]
struct Entry {
    chip: Chip,
    /// Counting the lines of a block for each frame would be slow.
    label: Arc<str>,
}

impl Chips {
    /// Returns true if a block of `size` bytes can be kept.
    pub(super) fn has_room(&self, size: usize) -> bool {
        let used: usize = self.held.values().map(|entry| entry.chip.size()).sum();
        used + size <= PASTE_LIMIT && self.free_character().is_some()
    }

    /// Keeps a pasted block. Returns its character and number.
    pub(super) fn add_paste(&mut self, text: &str) -> Option<(char, u32)> {
        let number = 1 + self.highest_paste();
        let text = Arc::from(unify_line_ends(text));
        Some((self.add(Chip::Paste { number, text })?, number))
    }

    /// Keeps an image. Returns its character and number.
    pub(super) fn add_image(&mut self, about: &str) -> Option<(char, u32)> {
        let number = 1 + self.images;
        let about: String = about
            .chars()
            .filter(|c| c.is_alphanumeric() || ".-_ ".contains(*c))
            .take(ABOUT)
            .collect();
        let about = about.into();
        let character = self.add(Chip::Image { number, about })?;
        self.images = number;
        Some((character, number))
    }

    /// Returns the chip of a character.
    pub(super) fn get(&self, character: char) -> Option<&Chip> {
        self.held.get(&character).map(|entry| &entry.chip)
    }

    /// Returns what the user sees for a grapheme of the buffer if it is a chip.
    pub(super) fn label(&self, grapheme: &str) -> Option<&str> {
        let character = grapheme.chars().next().filter(|found| is_chip(*found))?;
        let entry = self.held.get(&character)?;
        Some(&entry.label)
    }

    /// Forgets all chips that do not stand in `text`.
    pub(super) fn retain(&mut self, text: &str) {
        self.forget(text, |_| false);
    }

    /// Forgets all pasted blocks that do not stand in `text`, and images of long ago.
    pub(super) fn retain_images(&mut self, text: &str) {
        let newest = self.images;
        self.forget(text, |chip| match chip {
            Chip::Image { number, .. } => *number + IMAGES > newest,
            Chip::Paste { .. } => false,
        });
    }

    fn forget(&mut self, text: &str, is_kept: impl Fn(&Chip) -> bool) {
        let standing: HashSet<char> = text.chars().filter(|found| is_chip(*found)).collect();
        self.held
            .retain(|character, entry| standing.contains(character) || is_kept(&entry.chip));
    }

    /// Returns `text`, in which the words of an image's chip are the chip again.
    pub(super) fn linked(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (character, entry) in &self.held {
            if matches!(entry.chip, Chip::Image { .. }) {
                text = text.replacen(&*entry.label, character.encode_utf8(&mut [0; 4]), 1);
            }
        }
        text
    }

    /// Returns the chips that stand in `text`.
    pub(super) fn of(&self, text: &str) -> Chips {
        let mut chips = self.clone();
        chips.retain(text);
        chips
    }

    /// Takes the chips of a draft in. Returns the draft's text with the characters they have here.
    pub(super) fn adopt(&mut self, text: &str, chips: &Chips) -> String {
        self.images = self.images.max(chips.images);
        let mut here = BTreeMap::new();
        for (character, entry) in &chips.held {
            let known = self
                .get(*character)
                .is_some_and(|chip| chip.is_same(&entry.chip));
            let own = if known {
                Some(*character)
            } else {
                self.add(entry.chip.clone())
            };
            here.extend(own.map(|own| (*character, own)));
        }
        text.chars()
            .filter_map(|character| match is_chip(character) {
                true => here.get(&character).copied(),
                false => Some(character),
            })
            .collect()
    }

    /// Splits `text` into plain stretches and chips.
    pub(super) fn pieces<'a>(&'a self, text: &'a str) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        let mut start = 0;
        for (at, found) in text.match_indices(is_chip) {
            if start < at {
                pieces.push(Piece::Text(&text[start..at]));
            }
            start = at + found.len();
            let chip = found
                .chars()
                .next()
                .and_then(|character| self.get(character));
            pieces.extend(chip.map(Piece::Chip));
        }
        if start < text.len() {
            pieces.push(Piece::Text(&text[start..]));
        }
        pieces
    }

    /// Returns `text` with each block in place of its chip, and each image as its label.
    pub(super) fn expanded(&self, text: &str) -> String {
        let parts = self.pieces(text).into_iter().map(|piece| match piece {
            Piece::Text(text) => text.into(),
            Piece::Chip(Chip::Paste { text, .. }) => text.to_string(),
            Piece::Chip(chip) => chip.label(),
        });
        parts.collect()
    }

    /// Returns `text` as the user sees it.
    pub(super) fn shown(&self, text: &str) -> String {
        let parts = self.pieces(text).into_iter().map(|piece| match piece {
            Piece::Text(text) => text.into(),
            Piece::Chip(chip) => chip.label(),
        });
        parts.collect()
    }

    fn add(&mut self, chip: Chip) -> Option<char> {
        let character = self.free_character()?;
        let label = chip.label().into();
        self.held.insert(character, Entry { chip, label });
        Some(character)
    }

    fn free_character(&self) -> Option<char> {
        match self.held.last_key_value() {
            None => Some(FIRST),
            Some((last, _)) => char::from_u32(u32::from(*last) + 1).filter(|next| is_chip(*next)),
        }
    }

    fn highest_paste(&self) -> u32 {
        let numbers = self.held.values().map(|entry| match entry.chip {
            Chip::Paste { number, .. } => number,
            Chip::Image { .. } => 0,
        });
        numbers.max().unwrap_or(0)
    }
}
