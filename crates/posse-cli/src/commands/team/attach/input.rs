//! Parses a line that a person types to a member.

use posse_port::closest;

use crate::error::Advised;
use crate::output::tame;

/// The slash commands.
const COMMANDS: [&str; 4] = ["interrupt", "stop", "approve", "reject"];

/// The meaning of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttachInput {
    Nothing,
    /// Text for the member.
    Words(String),
    Interrupt,
    /// End the member at once.
    Stop,
    /// An answer; the first word may name the request.
    Answer {
        request: Option<String>,
        approve: bool,
        text: String,
    },
}

pub(super) fn read(line: &str) -> Result<AttachInput, Advised> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return Ok(if line.is_empty() {
            AttachInput::Nothing
        } else {
            AttachInput::Words(line.to_owned())
        });
    };
    let (name, rest) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    match (name, rest.trim()) {
        ("interrupt", "") => Ok(AttachInput::Interrupt),
        ("stop", "") => Ok(AttachInput::Stop),
        ("interrupt" | "stop", _) => Err(Advised {
            what: format!("/{name} takes no text"),
            advice: "send it first, on a line of its own".into(),
        }),
        ("approve" | "reject", rest) => {
            let (first, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let request = Some(first.to_owned()).filter(|first| !first.is_empty());
            Ok(AttachInput::Answer {
                request,
                approve: name == "approve",
                text: text.trim().to_owned(),
            })
        }
        (other, _) => {
            let meant = closest(other, &COMMANDS).map(|name| format!("did you mean /{name}? "));
            let all = COMMANDS.map(|name| format!("/{name}")).join(", ");
            Err(Advised {
                what: format!("there is no /{}", tame(other)),
                advice: format!(
                    "{}there are {all}; a space before the slash sends it as text",
                    meant.unwrap_or_default()
                ),
            })
        }
    }
}

/// Returns true if a word looks like the id of a request.
pub(super) fn is_id(word: &str) -> bool {
    let (shortest, is_part) = (8, |c: char| c.is_ascii_hexdigit() || c == '-');
    word.len() >= shortest
        && word.chars().all(is_part)
        && word.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_words_unless_it_begins_with_a_slash() {
        let answer = |request: Option<&str>, approve, text: &str| AttachInput::Answer {
            request: request.map(str::to_owned),
            approve,
            text: text.into(),
        };
        for (line, expected) in [
            ("  ", AttachInput::Nothing),
            ("look at a/b\n", AttachInput::Words("look at a/b".into())),
            ("/interrupt", AttachInput::Interrupt),
            ("/stop ", AttachInput::Stop),
            ("/approve", answer(None, true, "")),
            ("/approve 0197 good", answer(Some("0197"), true, "good")),
            ("/reject not  so", answer(Some("not"), false, "so")),
        ] {
            assert_eq!(read(line).unwrap(), expected, "{line}");
        }
        assert!(
            read("/interupt")
                .unwrap_err()
                .advice
                .contains("did you mean /interrupt?")
        );
        assert!(read("/stop it").unwrap_err().what.contains("takes no text"));
        let ids = [
            "0197f0aa",
            "0197F0AA-31c4",
            "0197",
            "accede-to",
            "defaced-",
            "leave",
            "12345678x",
        ]
        .map(is_id);
        assert_eq!(ids, [true, true, false, false, false, false, false]);
    }
}
