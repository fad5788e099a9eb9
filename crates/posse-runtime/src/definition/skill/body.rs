//! The instructions of a skill: text with placeholders for arguments, facts and command output. A
//! body is parsed once, before values are inserted: an argument is never read as a placeholder.

use std::path::Path;

use crate::definition::skill::arguments::{Quotes, quoted, split};
use posse_port::model::Effort;

/// Maximum number of commands in a body.
pub(crate) const MOST_COMMANDS: usize = 16;

/// Maximum size of an expanded body in bytes: a placeholder may occur often, and an argument be
/// long.
const LONGEST: usize = 1024 * 1024;

/// The expanded body is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is longer than 1 MiB with its arguments")]
pub struct TooLong;

/// Parsed instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillBody {
    /// Source text.
    pub text: String,
    pieces: Vec<TemplatePiece>,
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    /// A value that is inserted.
    Placeholder(Placeholder),
    /// The output of a command.
    Command(Vec<TemplatePiece>),
}

/// A place in the text where a value is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    /// All arguments, verbatim.
    Arguments,
    /// One argument, from 0.
    Argument(usize),
    Session,
    SkillDirectory,
    ProjectDirectory,
    Effort,
}

/// Values that are inserted.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// Text after the skill's name.
    pub arguments: &'a str,
    /// ID of the session.
    pub session: &'a str,
    /// Directory of the skill.
    pub directory: &'a Path,
    /// Directory of the agent.
    pub project: &'a Path,
    /// Reasoning effort, if it is known.
    pub effort: Option<Effort>,
}

/// A part of the expanded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text.
    Text(String),
    /// A command, to be replaced by its output.
    Command(String),
}

impl SkillBody {
    /// Parses a text. `names` are those of the arguments, in order. Errors have a line, from 0.
    pub fn new(text: &str, names: &[String]) -> Result<Self, (usize, String)> {
        let mut pieces = Vec::new();
        let (mut rest, mut commands) = (text, 0);
        while let Some((at, end)) = next_command(rest) {
            pieces.extend(placeholders(&rest[..at], names));
            commands += 1;
            let line = || text.len() - rest.len() + at;
            let line = || text[..line()].matches('\n').count();
            let command = rest[at + 2..end].trim();
            if command.is_empty() {
                return Err((
                    line(),
                    "there is no command between the backquotes".to_owned(),
                ));
            }
            if commands > MOST_COMMANDS {
                return Err((
                    line(),
                    format!("there are more than {MOST_COMMANDS} commands"),
                ));
            }
            pieces.push(TemplatePiece::Command(placeholders(command, names)));
            rest = &rest[end + 1..];
        }
        pieces.extend(placeholders(rest, names));
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// Returns true if it runs commands.
    pub(crate) fn has_commands(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, TemplatePiece::Command(_)))
    }

    /// Inserts all values, except for command output. Arguments without a placeholder are appended.
    pub fn expand(&self, values: &Values<'_>) -> Result<Vec<TemplatePart>, TooLong> {
        let words = split(values.arguments);
        let mut parts: Vec<TemplatePart> = Vec::new();
        let mut left = LONGEST;
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Command(command) => {
                    parts.push(TemplatePart::Command(in_command(
                        command, values, &words, &mut left,
                    )?));
                }
                piece => add(&mut parts, &put(piece, values, &words), &mut left)?,
            }
        }
        if !values.arguments.is_empty() && !takes_arguments(&self.pieces) {
            add(
                &mut parts,
                &format!("\n\nARGUMENTS: {}", values.arguments),
                &mut left,
            )?;
        }
        Ok(parts)
    }
}

/// Inserts values into a command, such that a shell reads each as data and never as part of the
/// command.
fn in_command(
    pieces: &[TemplatePiece],
    values: &Values<'_>,
    words: &[String],
    left: &mut usize,
) -> Result<String, TooLong> {
    let (mut command, mut quotes) = (String::new(), Quotes::default());
    for piece in pieces {
        let text = match piece {
            TemplatePiece::Text(text) => {
                quotes.read(text);
                text.clone()
            }
            // Outside quotes, all arguments are several words.
            TemplatePiece::Placeholder(Placeholder::Arguments) if !quotes.open() => words
                .iter()
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" "),
            TemplatePiece::Placeholder(Placeholder::Argument(at)) if words.len() <= *at => {
                String::new()
            }
            piece => quotes.put(&put(piece, values, words)),
        };
        take(left, &text)?;
        command.push_str(&text);
    }
    Ok(command)
}

fn take(left: &mut usize, text: &str) -> Result<(), TooLong> {
    *left = left.checked_sub(text.len()).ok_or(TooLong)?;
    Ok(())
}

/// Adds text, joining it with text before it.
fn add(parts: &mut Vec<TemplatePart>, text: &str, left: &mut usize) -> Result<(), TooLong> {
    take(left, text)?;
    match parts.last_mut() {
        Some(TemplatePart::Text(last)) => last.push_str(text),
        _ => parts.push(TemplatePart::Text(text.to_owned())),
    }
    Ok(())
}

/// Returns true if there is a placeholder for arguments.
fn takes_arguments(pieces: &[TemplatePiece]) -> bool {
    pieces.iter().any(|piece| match piece {
        TemplatePiece::Placeholder(place) => {
            matches!(place, Placeholder::Arguments | Placeholder::Argument(_))
        }
        TemplatePiece::Command(command) => takes_arguments(command),
        TemplatePiece::Text(_) => false,
    })
}

fn put(piece: &TemplatePiece, values: &Values<'_>, words: &[String]) -> String {
    match piece {
        TemplatePiece::Text(text) => text.clone(),
        TemplatePiece::Placeholder(Placeholder::Arguments) => values.arguments.to_owned(),
        TemplatePiece::Placeholder(Placeholder::Argument(at)) => {
            words.get(*at).cloned().unwrap_or_default()
        }
        TemplatePiece::Placeholder(Placeholder::Session) => values.session.to_owned(),
        TemplatePiece::Placeholder(Placeholder::SkillDirectory) => {
            values.directory.display().to_string()
        }
        TemplatePiece::Placeholder(Placeholder::ProjectDirectory) => {
            values.project.display().to_string()
        }
        TemplatePiece::Placeholder(Placeholder::Effort) => values
            .effort
            .map(Effort::as_str)
            .unwrap_or_default()
            .to_owned(),
        // Cannot happen: commands are not nested.
        TemplatePiece::Command(_) => String::new(),
    }
}

/// Returns where the next `` !`…` `` begins and ends. It must follow white space or the beginning,
/// and be on one line.
fn next_command(text: &str) -> Option<(usize, usize)> {
    text.match_indices("!`").find_map(|(at, mark)| {
        let alone = text[..at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        let after = at + mark.len();
        // Searched only as far as needed: a long line may have many of them.
        let end = if alone {
            text[after..].find(['`', '\n'])
        } else {
            None
        };
        end.map(|end| (at, after + end))
            .filter(|(_, end)| text[*end..].starts_with('`'))
    })
}

/// Splits a text at its placeholders.
fn placeholders(text: &str, names: &[String]) -> Vec<TemplatePiece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('\\') {
            // An escaped dollar sign.
            plain.push_str(before);
            plain.push('$');
            rest = &from[1..];
            continue;
        }
        plain.push_str(before);
        match place(&from[1..], names) {
            Some((place, length)) => {
                if !plain.is_empty() {
                    pieces.push(TemplatePiece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(TemplatePiece::Placeholder(place));
                rest = &from[1 + length..];
            }
            None => {
                plain.push('$');
                rest = &from[1..];
            }
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(TemplatePiece::Text(plain));
    }
    pieces
}

/// Returns the placeholder after a dollar sign, and the length of its name.
fn place(after: &str, names: &[String]) -> Option<(Placeholder, usize)> {
    const FACTS: [(&str, Placeholder); 4] = [
        ("{CLAUDE_SESSION_ID}", Placeholder::Session),
        ("{CLAUDE_SKILL_DIR}", Placeholder::SkillDirectory),
        ("{CLAUDE_PROJECT_DIR}", Placeholder::ProjectDirectory),
        ("{CLAUDE_EFFORT}", Placeholder::Effort),
    ];
    if let Some((name, place)) = FACTS.iter().find(|(name, _)| after.starts_with(name)) {
        return Some((*place, name.len()));
    }
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number < 1_000);
    let word = after
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(after.len());
    if let Some(index) = after.strip_prefix("ARGUMENTS[") {
        let end = digits(index);
        if let (Some(at), true) = (number(&index[..end]), index[end..].starts_with(']')) {
            return Some((Placeholder::Argument(at), "ARGUMENTS[".len() + end + 1));
        }
    }
    match &after[..word] {
        "ARGUMENTS" => Some((Placeholder::Arguments, word)),
        name if let Some(at) = names.iter().position(|known| known == name) => {
            Some((Placeholder::Argument(at), word))
        }
        name if !name.is_empty() && digits(name) == name.len() => {
            number(name).map(|at| (Placeholder::Argument(at), word))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(body: &str, arguments: &str) -> Vec<TemplatePart> {
        let names = ["file".to_owned(), "level".to_owned()];
        let values = Values {
            arguments,
            session: "s-1",
            directory: Path::new("/skills/x"),
            project: Path::new("/work"),
            effort: Some(Effort::High),
        };
        SkillBody::new(body, &names)
            .unwrap()
            .expand(&values)
            .unwrap()
    }

    fn text(body: &str, arguments: &str) -> String {
        let one = |part| match part {
            TemplatePart::Text(text) => text,
            TemplatePart::Command(command) => format!("«{command}»"),
        };
        expanded(body, arguments).into_iter().map(one).collect()
    }

    #[test]
    fn everything_comes_in_its_place() {
        let table = [
            ("Look at $ARGUMENTS.", "a.rs b.rs", "Look at a.rs b.rs."),
            ("Look at $ARGUMENTS.", "", "Look at ."),
            ("$0 and $1 and $2.", "'a b' c", "a b and c and ."),
            ("$ARGUMENTS[1]$ARGUMENTS[0]", "a b", "ba"),
            ("$ARGUMENTS[x] $ARGUMENTS[", "a", "a[x] a["),
            (
                "$file at $level, $files",
                "a.rs high",
                "a.rs at high, $files",
            ),
            (
                "in ${CLAUDE_SKILL_DIR}/x of ${CLAUDE_PROJECT_DIR}",
                "",
                "in /skills/x/x of /work",
            ),
            (
                "${CLAUDE_SESSION_ID} ${CLAUDE_EFFORT} ${HOME} ${CLAUDE_X}",
                "",
                "s-1 high ${HOME} ${CLAUDE_X}",
            ),
            (r"it costs \$1, not $1", "a b", "it costs $1, not b"),
            ("a $ alone, $HOME and $", "", "a $ alone, $HOME and $"),
            // What has no place comes last.
            ("Do it.", "now please", "Do it.\n\nARGUMENTS: now please"),
            ("Do it.", "", "Do it."),
            ("Do ${CLAUDE_EFFORT}.", "x", "Do high.\n\nARGUMENTS: x"),
            // Nothing of an argument is read again.
            (
                "$0|$1",
                "'$1' '${CLAUDE_SESSION_ID}'",
                "$1|${CLAUDE_SESSION_ID}",
            ),
            ("$ARGUMENTS", "$ARGUMENTS !`rm x`", "$ARGUMENTS !`rm x`"),
            ("Do it.", "$0 !`rm x`", "Do it.\n\nARGUMENTS: $0 !`rm x`"),
            // Commands.
            ("Now: !`git diff`.", "", "Now: «git diff»."),
            ("!`cat $0` !` ls `", "'a b'", "«cat 'a b'» «ls»"),
            ("!`cat $0`", "'x` y'", "«cat 'x` y'»"),
            // A shell reads no value as more of the command.
            (
                "!`ls $ARGUMENTS $3`",
                "-l 'a b' ;rm",
                "«ls -l 'a b' ';rm' »",
            ),
            (r#"!`grep "$0" f`"#, "$(rm)", r#"«grep ""'$(rm)'"" f»"#),
            ("!`grep '$ARGUMENTS' f`", "a;b c", "«grep '''a;b c''' f»"),
            (
                r#"!`echo "$(cat "$0")" $0`"#,
                r"a\;b",
                r#"«echo "$(cat ""'a;b'"")" 'a;b'»"#,
            ),
            ("!`echo $0`", r#""it's""#, r"«echo 'it'\''s'»"),
            ("!`${CLAUDE_SKILL_DIR}/x $0`", "''", "«/skills/x/x ''»"),
            (
                "wow!`no` and `code` and !`open",
                "",
                "wow!`no` and `code` and !`open",
            ),
            ("!`a\nb` x", "", "!`a\nb` x"),
            ("ü !`é`ö$0-ä $0ä", "ß", "ü «é»öß-ä $0ä"),
        ];
        for (body, arguments, expected) in table {
            assert_eq!(text(body, arguments), expected, "{body} with {arguments}");
        }
        assert_eq!(expanded("a", "").len(), 1);
        assert_eq!(expanded("", ""), []);
    }

    #[test]
    fn what_is_no_body_says_where() {
        let wrong = |text: &str| SkillBody::new(text, &[]).unwrap_err();
        assert_eq!(
            wrong("a\nb !` `"),
            (1, "there is no command between the backquotes".to_owned())
        );
        let many = "!`a`\n".repeat(MOST_COMMANDS + 1);
        assert_eq!(
            wrong(&many),
            (MOST_COMMANDS, "there are more than 16 commands".to_owned())
        );
        assert!(SkillBody::new("!`a`", &[]).unwrap().has_commands());
        assert!(!SkillBody::new("a", &[]).unwrap().has_commands());
    }

    #[test]
    fn what_is_put_in_has_a_longest_length() {
        let body = SkillBody::new(&"$ARGUMENTS !`echo $0`\n".repeat(16), &[]).unwrap();
        let expand = |body: &SkillBody, length: usize| {
            let (arguments, nowhere) = (&"x".repeat(length)[..], Path::new(""));
            let values = Values {
                arguments,
                session: "",
                directory: nowhere,
                project: nowhere,
                effort: None,
            };
            body.expand(&values)
        };
        assert!(expand(&body, 32_000).is_ok());
        assert_eq!(expand(&body, 33_000), Err(TooLong));
        assert_eq!(
            expand(&SkillBody::new("Do it.", &[]).unwrap(), LONGEST),
            Err(TooLong)
        );
    }

    proptest::proptest! {
        #[test]
        fn a_body_without_places_is_what_it_was(text in "[a-z \\n!`{}\\[\\]ü.]{0,40}", arguments in "\\PC{0,12}") {
            let body = SkillBody::new(&text, &[]);
            proptest::prop_assume!(body.as_ref().is_ok_and(|body| !body.has_commands()));
            let values = Values {
                arguments: arguments.trim(), session: "", directory: Path::new(""), project: Path::new(""), effort: None,
            };
            let expected = match arguments.trim() {
                "" => text.clone(),
                arguments => format!("{text}\n\nARGUMENTS: {arguments}"),
            };
            let expected = if expected.is_empty() { vec![] } else { vec![TemplatePart::Text(expected)] };
            proptest::prop_assert_eq!(body.unwrap().expand(&values), Ok(expected));
        }
    }
}
