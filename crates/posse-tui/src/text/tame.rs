//! Makes text from outside harmless before it becomes cells of a terminal.
//!
//! Control characters are spelt out rather than dropped, so that a reader sees that somebody tried.
//! Escape sequences as a whole are the business of [`escapes`](super::escapes).

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns from one tab stop to the next.
const TAB_STOP: usize = 4;
/// Zero-width characters that may follow each other.
const MAX_ZERO_WIDTH: usize = 4;
/// Bytes that a grapheme may have.
const MAX_GRAPHEME: usize = 32;

/// Returns the text without anything that a terminal could obey.
///
/// `\n` is the only control character that remains. Other controls, directional marks and Unicode
/// line separators become `\u{…}`, tabs become blanks, `\r\n` becomes `\n`. At most four zero-width
/// characters follow each other and no grapheme exceeds 32 bytes.
pub fn tame(text: &str) -> Cow<'_, str> {
    if text
        .bytes()
        .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(bound_graphemes(&spell_controls(text)))
}

/// Returns the text with everything spelt out that a terminal could obey, and all else as it is:
/// line ends and tabs remain.
///
/// This is for text that is written as it is, perhaps into a file. What becomes cells, or is
/// measured, passes [`tame`].
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match is_spelt(character) {
            true => out.extend(character.escape_unicode()),
            false => out.push(character),
        }
    }
    out
}

/// Returns the text tamed and as one line: line ends become blanks.
pub fn one_line(text: &str) -> String {
    tame(text).replace('\n', " ")
}

/// Returns true if the character takes no column of its own.
pub(super) fn is_zero_width(character: char) -> bool {
    character.width() == Some(0)
}

/// Spells out controls and drops zero-width characters from the fifth in a row. Tabs remain.
fn spell_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut zero_width = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\r' && characters.peek() == Some(&'\n') {
            continue;
        }
        if is_spelt(character) {
            out.extend(character.escape_unicode());
            zero_width = 0;
        } else if is_zero_width(character) {
            zero_width += 1;
            if zero_width <= MAX_ZERO_WIDTH {
                out.push(character);
            }
        } else {
            zero_width = 0;
            out.push(character);
        }
    }
    out
}

/// Returns true if the character must not reach a terminal as it is: controls, marks that change
/// the direction of text, and Unicode line separators.
pub fn is_spelt(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => character.is_control(),
    }
}

/// Shortens graphemes that are too long and expands tabs.
fn bound_graphemes(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    let mut graphemes = text.graphemes(true).peekable();
    while let Some(grapheme) = graphemes.next() {
        match grapheme {
            "\n" => {
                out.push('\n');
                column = 0;
            }
            "\t" => {
                let blanks = TAB_STOP - column % TAB_STOP;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            _ if grapheme.len() <= MAX_GRAPHEME => {
                out.push_str(grapheme);
                column += grapheme.width();
            }
            _ => {
                let kept = shortened(grapheme, graphemes.peek().copied());
                out.push_str(kept);
                column += kept.width();
            }
        }
    }
    out
}

/// Returns the beginning of a grapheme that does not merge with the `next` one.
fn shortened<'a>(grapheme: &'a str, next: Option<&str>) -> &'a str {
    let merges = |kept: &str| {
        let follower = next.and_then(|next| next.chars().next());
        follower.is_some_and(|follower| format!("{kept}{follower}").graphemes(true).count() == 1)
    };
    let mut kept = &grapheme[..grapheme.floor_char_boundary(MAX_GRAPHEME)];
    while let Some((at, last)) = kept.char_indices().next_back() {
        // A joiner at the end would pull in what follows, and the result would be too long again.
        if !is_zero_width(last) && !merges(kept) {
            return kept;
        }
        kept = &kept[..at];
    }
    "\u{fffd}"
}

#[cfg(test)]
pub(crate) mod tests;
