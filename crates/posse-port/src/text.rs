//! Short texts: neutralised, cut, put on one line. Everything here is pure.

mod neutral;

use std::borrow::Cow;
use std::path::Path;

use jiff::Timestamp;

pub use neutral::{FRAMES, INNER, inside, is_bracket, neutral};

/// Maximum length of a summary.
const SUMMARY_CHARACTERS: usize = 80;

/// Summarises a message by its first line, for people; used if its sender gave no summary.
pub fn summary(message: &str) -> String {
    let line = message
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("(empty)");
    let line = plain_line(line);
    if line.chars().count() <= SUMMARY_CHARACTERS {
        return line;
    }
    let mut short: String = line.chars().take(SUMMARY_CHARACTERS - 1).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// Puts a text on one line: control characters become spaces.
pub fn plain_line(text: &str) -> String {
    text.trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Puts foreign text on one line and neutralises imitated tags.
pub fn line(text: &str) -> String {
    neutral(&plain_line(text)).into_owned()
}

/// Formats a path like [`line()`].
pub fn shown(path: &Path) -> String {
    line(&path.display().to_string())
}

/// Returns the text or, if it exceeds `most` characters, its beginning and its end.
pub fn cut<'a>(text: &'a str, most: usize, file: Option<&Path>) -> Cow<'a, str> {
    let all = text.chars().count();
    if all <= most {
        return Cow::Borrowed(text);
    }
    let at = |number: usize| {
        text.char_indices()
            .nth(number)
            .map_or(text.len(), |(at, _)| at)
    };
    let (start, end) = (&text[..at(most / 2)], &text[at(all - most / 2)..]);
    let left_out = all - most / 2 * 2;
    let whole = file.map_or_else(String::new, |file| {
        format!("; all of it is in {}", file.display())
    });
    Cow::Owned(format!(
        "{start}\n[… {left_out} of {all} characters left out here{whole} …]\n{end}"
    ))
}

/// Formats a time to the second.
pub fn time(ms: i64) -> String {
    let seconds = Timestamp::from_second(ms.div_euclid(1000)).unwrap_or_default();
    seconds.to_string()
}

/// Escapes a text for use as a quoted attribute.
pub fn attribute(text: &str) -> String {
    let mut out = String::new();
    for c in plain_line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            c if is_bracket(c) => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves SM-01 (part: summary)
    #[test]
    fn a_summary_is_the_first_line() {
        let table = [
            ("Tests pass\nall 12 of them", "Tests pass".to_owned()),
            ("\n \r\n  the second \tline ", "the second  line".to_owned()),
            ("", "(empty)".to_owned()),
            (&"é".repeat(80), "é".repeat(80)),
            (&"é".repeat(81), format!("{}…", "é".repeat(79))),
        ];
        for (text, expected) in table {
            assert_eq!(summary(text), expected);
            assert!(summary(text).chars().count() <= 80);
        }
    }

    #[test]
    fn long_texts_are_cut_in_the_middle() {
        let file = Path::new("/o");
        assert_eq!(cut("äöü", 3, Some(file)), "äöü");
        assert_eq!(
            cut("äbcdefgö", 4, Some(file)),
            "äb\n[… 4 of 8 characters left out here; all of it is in /o …]\ngö"
        );
        assert_eq!(
            cut("abcde", 3, None),
            "a\n[… 3 of 5 characters left out here …]\ne"
        );
    }
}
