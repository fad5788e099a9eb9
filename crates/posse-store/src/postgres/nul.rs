//! Escaping of NUL, the one character that PostgreSQL's text cannot hold.
//!
//! On the way in, `\u0000` in JSON becomes U+F8FF and `0`; a real U+F8FF becomes U+F8FF and `1`.
//! On the way out this is reversed, in JSON and in plain text.

use std::borrow::Cow;

/// The escape character: of the private use area, so that it hardly occurs in real text.
const MARK: char = '\u{f8ff}';

/// Returns JSON with escaped NULs replaced.
pub(super) fn hide(json: &str) -> Cow<'_, str> {
    if !json.contains(r"\u0000") && !json.contains(MARK) {
        return Cow::Borrowed(json);
    }
    let mut hidden = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(['\\', MARK]) {
        hidden.push_str(&rest[..at]);
        rest = &rest[at..];
        // A backslash is skipped together with what it escapes: in `\\u0000` no escape of NUL
        // begins.
        let (shown, length) = match rest {
            _ if rest.starts_with(r"\u0000") => ("\u{f8ff}0", 6),
            _ if rest.starts_with(MARK) => ("\u{f8ff}1", MARK.len_utf8()),
            _ => (rest.get(..2).unwrap_or(rest), rest.len().min(2)),
        };
        hidden.push_str(shown);
        rest = &rest[length..];
    }
    hidden.push_str(rest);
    Cow::Owned(hidden)
}

/// Returns plain text with NULs replaced, as columns have it.
pub(super) fn hide_text(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(MARK, "\u{f8ff}1").replace('\0', "\u{f8ff}0"))
}

/// Restores JSON.
pub(super) fn show(json: &str) -> Cow<'_, str> {
    turn_back(json, r"\u0000")
}

/// Restores plain text that was hidden as JSON.
pub(super) fn show_text(text: &str) -> Cow<'_, str> {
    turn_back(text, "\0")
}

/// Replaces the escapes by `nul` and by the escape character itself.
fn turn_back<'a>(text: &'a str, nul: &str) -> Cow<'a, str> {
    let mut parts = text.split(MARK);
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::from(first);
    for part in parts {
        match part.as_bytes().first() {
            Some(b'0') => shown.push_str(nul),
            _ => shown.push(MARK),
        }
        shown.push_str(part.get(1..).unwrap_or_default());
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        for text in [
            "",
            "a",
            "\0",
            "\\u0000",
            "\\\0\\",
            "\u{f8ff}0",
            "a\u{f8ff}\0\u{f8ff}1\\\\u0000",
            "ü\0ü",
        ] {
            let json = serde_json::to_string(text).unwrap();
            let hidden = hide(&json);
            assert!(!hidden.replace(r"\\", "").contains(r"\u0000"), "{hidden}");
            assert_eq!(show(&hidden), json);
            let column: String = serde_json::from_str(&hidden).unwrap();
            assert_eq!(show_text(&column), text);
            assert_eq!(hide_text(text), column);
            // JSON inside JSON is hidden twice, and turned back from the outside.
            let outer = serde_json::to_string(&*hidden).unwrap();
            let column: String = serde_json::from_str(&hide(&outer)).unwrap();
            assert_eq!(show_text(&column), hidden);
        }
    }
}
