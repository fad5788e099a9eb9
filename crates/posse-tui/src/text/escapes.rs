//! Removes terminal escape sequences, so that coloured output of commands reads well.
//!
//! This is for looks only. What is malformed or cut off stays, and [`tame`](super::tame()) spells
//! it out: safety is decided there.

use std::borrow::Cow;

/// Returns the text without well-formed escape sequences: CSI, OSC, DCS, APC, PM, SOS, character
/// sets and two-character escapes, in their 7-bit and 8-bit forms.
///
/// The result is not safe for a terminal: pass it to [`tame`](super::tame()).
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    let is_introducer =
        |character| character == '\u{1b}' || ('\u{80}'..='\u{9f}').contains(&character);
    if !text.contains(is_introducer) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_introducer) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let after = after_sequence(rest).unwrap_or_else(|| {
            let mut characters = rest.chars();
            out.extend(characters.next());
            characters.as_str()
        });
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns what follows the sequence at the beginning of the text, or `None` if it is malformed.
fn after_sequence(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    let introducer = match characters.next()? {
        '\u{1b}' => characters.next()?,
        // 8-bit forms stand for ESC and the character 0x40 below.
        c1 => char::from_u32(u32::from(c1).checked_sub(0x40)?)?,
    };
    let body = characters.as_str();
    match introducer {
        '[' => after_control_sequence(body),
        ']' => after_string(body, |character| {
            !character.is_control() || character == '\t'
        }),
        'P' | 'X' | '^' | '_' => after_string(body, |character| {
            !character.is_control() || matches!(character, '\t' | '\r' | '\n')
        }),
        ' '..='/' => {
            let body = body.trim_start_matches(|character| matches!(character, ' '..='/'));
            body.strip_prefix(|character| matches!(character, '0'..='~'))
        }
        '0'..='~' => Some(body),
        _ => None,
    }
}

/// Returns what follows the parameters and the final character of a CSI sequence.
fn after_control_sequence(body: &str) -> Option<&str> {
    let body = body.trim_start_matches(|character| matches!(character, '0'..='?'));
    let body = body.trim_start_matches(|character| matches!(character, ' '..='/'));
    body.strip_prefix(|character| matches!(character, '@'..='~'))
}

/// Returns what follows a string and its terminator.
///
/// The string ends at the first character that is not `allowed`, so that an open string does not
/// swallow the output after it and many of them do not cost a scan to the end each.
fn after_string(body: &str, allowed: impl Fn(char) -> bool) -> Option<&str> {
    let end = body.find(|character| !allowed(character))?;
    let rest = &body[end..];
    ["\u{7}", "\u{1b}\\", "\u{9c}"]
        .iter()
        .find_map(|terminator| rest.strip_prefix(terminator))
}

#[cfg(test)]
mod tests {
    use super::without_escapes;

    #[test]
    fn removes_well_formed_sequences() {
        for (text, expected) in [
            ("plain", "plain"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}[?25lx\u{1b}[2 q", "x"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9d}2;t\u{9c}x", "x"),
            ("\u{1b}Pq#0\n#1\u{1b}\\x", "x"),
            ("\u{1b}_Ga=q;AAAA\u{1b}\\x", "x"),
            ("\u{1b}(Bx\u{1b})0\u{1b}%G", "x"),
            ("\u{1b}c\u{1b}7\u{1b}=x\u{84}", "x"),
        ] {
            assert_eq!(without_escapes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn leaves_malformed_sequences() {
        for text in [
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}[31",
            "\u{1b}[3\u{1}m",
            "\u{1b}]0;title\nmore\u{7}",
            "\u{1b}]0;open",
            "\u{1b}(",
            "\u{1b}é",
        ] {
            assert_eq!(without_escapes(text), text, "{text:?}");
        }
    }

    #[test]
    fn many_open_strings_are_linear() {
        let text = "\u{9d}\u{1b}]x".repeat(100_000);
        assert_eq!(without_escapes(&text).len(), text.len());
    }
}
