//! Text in a limited width.

use anstream::adapter::strip_str;
use posse_tui::text::{clip, columns, wrap};

use super::tame;

/// Returns `text` in at most `longest` characters.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(longest.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// Returns `text` in at most `widest` terminal columns.
pub(crate) fn fitted(text: &str, widest: usize) -> String {
    match u16::try_from(widest) {
        Ok(widest) => clip(&text.into(), widest).to_string(),
        Err(_) => text.to_owned(),
    }
}

/// Returns `text`, which may have styles, with lines that are broken at words to fit the width. What
/// stands between backticks is copied whole, and so is a word that is longer than the width.
pub(crate) fn wrapped(text: &str, widest: usize) -> String {
    let lines = text.split('\n').map(|line| match width_of(line) <= widest {
        true => line.to_owned(),
        false => broken(line, widest),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Breaks a line at words.
fn broken(line: &str, widest: usize) -> String {
    let (mut lines, mut used, mut is_first) = (String::with_capacity(line.len()), 0, true);
    for word in words(line) {
        let taken = width_of(word);
        if used > 0 && used + 1 + taken > widest {
            lines.push_str("\n  ");
            used = 2;
        } else if !is_first {
            lines.push(' ');
            used += 1;
        }
        is_first = false;
        lines.push_str(word);
        used += taken;
    }
    lines
}

/// Returns the words of a line. Code is one word: a command that is broken cannot be copied.
fn words(line: &str) -> Vec<&str> {
    let (mut words, mut begin, mut tick) = (Vec::new(), 0, None);
    for (at, c) in line.char_indices() {
        match (c, tick) {
            ('`', None) => {
                tick = line[at + 1..].contains('`').then_some(at);
            }
            ('`', Some(_)) => tick = None,
            (' ', None) => {
                words.push(&line[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[begin..]);
    words
}

/// Returns the columns that a text with styles takes.
pub(crate) fn width_of(text: &str) -> usize {
    columns(&strip_str(text).to_string())
}

/// Returns a line of others as it is safe to show, in lines for a terminal of so many columns. A word that
/// is longer is broken.
pub(crate) fn folded(line: &str, columns: Option<usize>) -> Vec<String> {
    let line = tame(line);
    match columns.and_then(|columns| u16::try_from(columns).ok()) {
        Some(columns) => {
            let lines = wrap(&line.into(), columns, 0);
            lines.iter().map(ToString::to_string).collect()
        }
        None => vec![line],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_words_and_code_is_whole() {
        let hint = "\x1b[1mhint:\x1b[0m is it there? `posse doctor` checks it";
        assert_eq!(wrapped(hint, 80), hint);
        let narrow = "\x1b[1mhint:\x1b[0m is it there?\n  `posse doctor` checks\n  it";
        assert_eq!(wrapped(hint, 24), narrow);
        assert_eq!(wrapped("a\n漢字 漢字", 5), "a\n漢字\n  漢字");
        let path = "see /a/very/long/path now";
        assert_eq!(wrapped(path, 8), "see\n  /a/very/long/path\n  now");
        assert_eq!(wrapped("try `a b c d` e", 6), "try\n  `a b c d`\n  e");
        assert_eq!(
            wrapped("  indented words here", 12),
            "  indented\n  words here"
        );
    }

    #[test]
    fn characters_are_counted() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }

    #[test]
    fn words_stay_whole() {
        assert_eq!(folded("one two three", Some(8)), ["one two", "three"]);
        assert_eq!(folded("one two three", None), ["one two three"]);
        assert_eq!(folded("", Some(8)), [""]);
    }

    #[test]
    fn columns_are_not_characters() {
        let check = |text: &str, widest: usize, fits: &str| assert_eq!(fitted(text, widest), fits);
        check("fix it", 6, "fix it");
        check("fix it", 5, "fix …");
        check("漢字かな", 8, "漢字かな");
        check("漢字かな", 7, "漢字か…");
        check("漢字かな", 6, "漢字…");
        check("漢", 1, "…");
        check("漢", 0, "");
    }
}
