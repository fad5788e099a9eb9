//! What is completed under the caret, and what a prompt's first character makes of it.

use super::buffer::EditBuffer;
use super::chips::is_chip;
use std::ops::Range;

/// What the word under the caret asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// The name of a slash command, without `/`.
    Command(&'a str),
    /// A file, directory or agent, without `@`.
    Mention(&'a str),
}

/// Returns what is to be completed at `cursor`, and the range that a completion replaces.
///
/// The range covers the whole word without its `/` or `@`. A command is looked for only at the
/// very start, and a first word with another `/` in it is a path. A mention starts a word.
pub fn target(text: &str, cursor: usize) -> Option<(Target<'_>, Range<usize>)> {
    let before = text.get(..cursor)?;
    let ends = |character: char| character.is_whitespace() || is_chip(character);
    let start = before
        .rfind(ends)
        .map_or(0, |at| at + char_length(text, at));
    let end = text[cursor..]
        .find(ends)
        .map_or(text.len(), |at| cursor + at);
    let word = &text[start..end];
    let range = start + 1..end;
    // A caret before the sign is not in what the sign begins.
    if cursor == start {
        return None;
    }
    if let Some(part) = word.strip_prefix('@') {
        return Some((Target::Mention(part), range));
    }
    let part = word
        .strip_prefix('/')
        .filter(|part| start == 0 && is_command(part))?;
    Some((Target::Command(part), range))
}

/// Puts a chosen completion in place of `range`, and the caret after it.
///
/// A blank follows, except after a directory (ending in `/`), which invites to complete further.
/// Returns false if it does not fit.
pub fn accept(buffer: &mut EditBuffer, range: Range<usize>, replacement: &str) -> bool {
    if replacement.ends_with('/') {
        return buffer.replace(range, replacement);
    }
    let blank_follows = buffer
        .text()
        .get(range.end..)
        .is_some_and(|rest| rest.starts_with(' '));
    let end = if blank_follows {
        range.end + 1
    } else {
        range.end
    };
    buffer.replace(range.start..end, &format!("{replacement} "))
}

/// What a prompt is by its first character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prefix<'a> {
    /// `!`: a command line for the shell.
    Shell(&'a str),
    /// `#`: a note to remember.
    Memory(&'a str),
    /// `/`: a slash command.
    Slash {
        /// The name without `/`.
        name: &'a str,
        /// What follows the name, without surrounding blanks.
        arguments: &'a str,
    },
    /// Anything else: words for the agent.
    Words(&'a str),
}

impl<'a> Prefix<'a> {
    /// Returns what `text` is. A path such as `/usr/bin` and a lone `/` are words.
    pub fn of(text: &'a str) -> Prefix<'a> {
        if let Some(line) = text.strip_prefix('!') {
            return Prefix::Shell(line.trim());
        }
        if let Some(note) = text.strip_prefix('#') {
            return Prefix::Memory(note.trim());
        }
        let Some(command) = text.strip_prefix('/') else {
            return Prefix::Words(text);
        };
        let (name, arguments) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        match is_command(name) && !name.is_empty() {
            true => Prefix::Slash {
                name,
                arguments: arguments.trim(),
            },
            false => Prefix::Words(text),
        }
    }
}

fn is_command(name: &str) -> bool {
    name.chars()
        .all(|character| character.is_alphanumeric() || "-_:.".contains(character))
}

fn char_length(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` marks the caret.
    fn found(marked: &str) -> Option<(Target<'static>, &'static str)> {
        let cursor = marked.find('|').unwrap();
        let text: &'static str = marked.replacen('|', "", 1).leak();
        target(text, cursor).map(|(target, range)| (target, &text[range]))
    }

    #[test]
    fn targets_are_at_word_starts() {
        use Target::{Command, Mention};
        for (marked, expected) in [
            ("/|", Some(Command(""))),
            ("/mo|", Some(Command("mo"))),
            ("/mo|del", Some(Command("model"))),
            ("|/model", None),
            ("/model |", None),
            ("/model opus|", None),
            (" /mo|", None),
            ("/usr/b|", None),
            ("@|", Some(Mention(""))),
            ("see @src/ma|in.rs now", Some(Mention("src/main.rs"))),
            ("see\n@ü|", Some(Mention("ü"))),
            ("/add @do|", Some(Mention("do"))),
            ("me@host|", None),
            ("漢　@a|", Some(Mention("a"))),
            ("\u{100000}@a|", Some(Mention("a"))),
            ("@a|\u{100000}", Some(Mention("a"))),
            ("@a | b", None),
            ("|", None),
        ] {
            let parts = expected.clone().map(|target| match target {
                Command(part) | Mention(part) => (target, part),
            });
            assert_eq!(found(marked), parts, "{marked}");
        }
    }

    #[test]
    fn offsets_that_are_none_find_nothing() {
        assert_eq!(target("漢", 1), None);
        assert_eq!(target("a", 9), None);
    }

    fn accepted(text: &str, cursor: usize, replacement: &str) -> (String, usize) {
        let mut buffer = EditBuffer::new();
        buffer.set(text);
        let (_, range) = target(text, cursor).unwrap();
        assert!(accept(&mut buffer, range, replacement));
        (buffer.text().to_owned(), buffer.cursor())
    }

    #[test]
    fn a_blank_follows_except_after_directories() {
        assert_eq!(accepted("/mo", 3, "model"), ("/model ".into(), 7));
        assert_eq!(
            accepted("see @sr now", 7, "src/"),
            ("see @src/ now".into(), 9)
        );
        assert_eq!(
            accepted("see @sr now", 7, "a.rs"),
            ("see @a.rs now".into(), 10)
        );
        assert_eq!(accepted("@sr\nnow", 3, "a.rs"), ("@a.rs \nnow".into(), 6));
    }

    #[test]
    fn the_first_character_decides() {
        for (text, prefix) in [
            ("!ls -l", Prefix::Shell("ls -l")),
            ("# use tabs", Prefix::Memory("use tabs")),
            (
                "/model opus 4",
                Prefix::Slash {
                    name: "model",
                    arguments: "opus 4",
                },
            ),
            (
                "/clear",
                Prefix::Slash {
                    name: "clear",
                    arguments: "",
                },
            ),
            (
                "/team:start\nnow",
                Prefix::Slash {
                    name: "team:start",
                    arguments: "now",
                },
            ),
            ("/usr/bin/env is old", Prefix::Words("/usr/bin/env is old")),
            ("/", Prefix::Words("/")),
            (" !ls", Prefix::Words(" !ls")),
            ("", Prefix::Words("")),
        ] {
            assert_eq!(Prefix::of(text), prefix, "{text}");
        }
    }
}
