//! The characters that may enter the buffer, and how all others are treated.

use std::borrow::Cow;

/// A tab moves to a place that depends on its column; a fixed number of blanks does not.
const TAB: &str = "    ";

/// Returns `text` as it may stand in a buffer.
///
/// Line ends become `\n`, tabs become four blanks. Control characters, bidi controls (which could
/// make a prompt look different from what is sent) and private-use characters (which stand for
/// chips) are dropped.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {
                characters.next_if_eq(&'\n');
                kept.push('\n');
            }
            '\u{2028}' | '\u{2029}' => kept.push('\n'),
            '\t' => kept.push_str(TAB),
            character if is_kept(character) => kept.push(character),
            _ => {}
        }
    }
    Cow::Owned(kept)
}

/// Returns `text` with `\n` for every line end. Pasted blocks are otherwise kept as they came.
pub(super) fn unify_line_ends(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns true for the three private-use areas of Unicode.
pub(super) fn is_private(character: char) -> bool {
    matches!(character,
        '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{FFFFD}' | '\u{100000}'..='\u{10FFFD}')
}

fn is_kept(character: char) -> bool {
    match character {
        '\n' => true,
        ' '..='~' => true,
        '\u{2028}' | '\u{2029}' => false,
        '\u{61C}' | '\u{200E}' | '\u{200F}' => false,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => false,
        _ => !character.is_control() && !is_private(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_gets_in() {
        for (given, kept) in [
            ("plain\ntext", "plain\ntext"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("a\r\r\nb", "a\n\nb"),
            ("a\tb", "a    b"),
            ("\u{1b}[31mred\u{7}\u{0}\u{7f}\u{9b}", "[31mred"),
            ("a\u{202e}b\u{2066}c", "abc"),
            ("a\u{e000}b\u{100000}c\u{f0001}", "abc"),
            ("a\u{2028}b", "a\nb"),
            ("👨\u{200d}👩 e\u{301} שלום", "👨\u{200d}👩 e\u{301} שלום"),
        ] {
            assert_eq!(clean(given), kept, "{given:?}");
        }
    }

    #[test]
    fn blocks_change_in_line_ends_only() {
        assert_eq!(unify_line_ends("a\tb\r\nc\rd\u{1b}"), "a\tb\nc\nd\u{1b}");
    }
}
