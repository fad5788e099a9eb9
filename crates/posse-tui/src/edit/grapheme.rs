//! Where the caret may stand: grapheme boundaries, with every chip a grapheme of its own.
//!
//! Unicode would join a combining mark to the private-use character of a chip in front of it.
//! Erasing the mark must not erase a pasted block, so clusters are split around chips.

use super::chips::is_chip;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};
use unicode_width::UnicodeWidthStr;

/// Returns the boundary after `at`, or the end of the text.
pub(super) fn next(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    // Two ASCII characters never join, except for \r\n, which the buffer does not hold.
    if bytes.get(at).is_some_and(u8::is_ascii) && bytes.get(at + 1).is_none_or(u8::is_ascii) {
        return at + 1;
    }
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let end = cursor
        .next_boundary(text, 0)
        .ok()
        .flatten()
        .unwrap_or(text.len());
    match text[at..end]
        .char_indices()
        .find(|(_, character)| is_chip(*character))
    {
        Some((0, chip)) => at + chip.len_utf8(),
        Some((before, _)) => at + before,
        None => end,
    }
}

/// Returns the boundary before `at`, or 0.
pub(super) fn previous(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let start = cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0);
    match text[start..at]
        .char_indices()
        .rfind(|(_, character)| is_chip(*character))
    {
        Some((before, chip)) if start + before + chip.len_utf8() == at => start + before,
        Some((before, chip)) => start + before + chip.len_utf8(),
        None => start,
    }
}

/// Returns `at` if it is a boundary, otherwise the next one.
pub(super) fn ceil(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    if is_boundary(text, at) {
        at
    } else {
        next(text, previous(text, at))
    }
}

/// Returns `at` if it is a boundary, otherwise the one before.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    if is_boundary(text, at) {
        at
    } else {
        previous(text, at)
    }
}

/// Returns true if the caret may stand at `at`, which is a character boundary.
pub(super) fn is_boundary(text: &str, at: usize) -> bool {
    text[at..].chars().next().is_none_or(is_chip)
        || text[..at].chars().next_back().is_none_or(is_chip)
        || GraphemeCursor::new(at, text.len(), true)
            .is_boundary(text, 0)
            .unwrap_or(true)
}

/// The graphemes of `text` with their offsets, in order.
pub(super) fn graphemes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        (start < text.len()).then(|| {
            at = next(text, start);
            (start, &text[start..at])
        })
    })
}

/// Columns of one grapheme that is not a chip.
pub(super) fn width(grapheme: &str) -> usize {
    if grapheme.len() == 1 {
        1
    } else {
        grapheme.width()
    }
}

/// Returns the longest beginning of `text` that fits into `columns`.
pub(super) fn clip(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += width(grapheme);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// Returns true for a grapheme between words at which a row may end.
pub(super) fn is_blank(grapheme: &str) -> bool {
    grapheme.chars().all(|character| {
        character.is_whitespace() && !matches!(character, '\u{a0}' | '\u{2007}' | '\u{202f}')
    })
}

/// What a grapheme is to movement by words. A word is a run of one kind.
///
/// Chinese and Japanese are written without blanks. A change of script is not always the end of a
/// word there, but it is a place where a reader expects one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Chip,
    Letters,
    Han,
    Hiragana,
    Katakana,
    Other,
}

/// Returns the kind of one grapheme.
pub(super) fn kind(grapheme: &str) -> Kind {
    match grapheme.chars().next() {
        Some(character) if is_chip(character) => Kind::Chip,
        Some('\u{3040}'..='\u{309F}') => Kind::Hiragana,
        Some('\u{30A0}'..='\u{30FF}' | '\u{FF66}'..='\u{FF9F}') => Kind::Katakana,
        Some('\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}') => {
            Kind::Han
        }
        Some(character) if character.is_alphanumeric() || character == '_' => Kind::Letters,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHIP: &str = "\u{100000}";

    fn check(parts: &[&str]) {
        let text = parts.concat();
        let forward: Vec<&str> = graphemes(&text).map(|(_, grapheme)| grapheme).collect();
        assert_eq!(forward, parts);
        let mut backward = Vec::new();
        let mut at = text.len();
        while at > 0 {
            let start = previous(&text, at);
            backward.insert(0, &text[start..at]);
            assert_eq!(next(&text, start), at);
            at = start;
        }
        assert_eq!(backward, parts);
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (low, high) = (floor(&text, at), ceil(&text, at));
            assert!(low <= at && at <= high, "{low} {at} {high}");
            assert_eq!(is_boundary(&text, at), low == high);
            assert!(is_boundary(&text, low) && is_boundary(&text, high));
        }
    }

    #[test]
    fn clusters_are_units() {
        check(&[
            "a",
            "e\u{301}",
            "漢",
            "👨\u{200d}👩\u{200d}👧",
            "\n",
            "🇩🇪",
            "🇫🇷",
            "ש",
            "1",
        ]);
        check(&["\u{301}", "a"]);
    }

    #[test]
    fn chips_join_nothing() {
        check(&[
            "a",
            CHIP,
            "\u{301}\u{301}",
            CHIP,
            CHIP,
            "\u{200d}",
            "👩",
            "\u{600}",
            CHIP,
        ]);
    }

    #[test]
    fn text_is_clipped_at_graphemes() {
        assert_eq!(clip("漢字", 3), "漢");
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("abc", 0), "");
    }
}
