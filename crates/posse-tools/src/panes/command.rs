//! Opens panes with a command of the user, for terminals and multiplexers that posse does not
//! know.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::panes::{NewPane, Panes};
use tokio::task::spawn_blocking;

use super::launch::{Launch, NoBudget};
use crate::child::{self, Unheard};

/// Time limit of the command.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum length of an error message, in characters.
const LONGEST: usize = 300;

/// Placeholders for values that differ between panes.
const PLACES: [&str; 4] = ["{title}", "{color}", "{cwd}", "{command}"];
/// Placeholder for the words of the pane's command, each as an argument.
const WORDS: &str = "{argv...}";

/// A command line with placeholders. It is not read by a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<String>);

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongTemplate {
    /// There is no program to run.
    #[error("it is empty; the first word must be a program")]
    Empty,
    /// Nothing would run in the pane.
    #[error(
        "it has neither {{argv...}} nor {{command}}; use one of them for what runs in the pane"
    )]
    Nothing,
    /// A placeholder is unknown.
    #[error("{0} is unknown; use {{title}}, {{color}}, {{cwd}}, {{command}} or {{argv...}}")]
    Unknown(String),
    /// Several arguments cannot be part of one.
    #[error("{0}: {{argv...}} stands for several arguments, so it is a word of its own")]
    Joined(String),
}

impl Template {
    /// Parses a template.
    pub fn new(words: Vec<String>) -> Result<Self, WrongTemplate> {
        if words
            .first()
            .is_none_or(|program| program.trim().is_empty())
        {
            return Err(WrongTemplate::Empty);
        }
        let is_known = |word: &str| word == WORDS || PLACES.contains(&word);
        if let Some(unknown) = words
            .iter()
            .flat_map(|word| braced(word))
            .find(|word| !is_known(word))
        {
            return Err(WrongTemplate::Unknown(unknown.to_owned()));
        }
        if let Some(joined) = words
            .iter()
            .find(|word| word.contains(WORDS) && *word != WORDS)
        {
            return Err(WrongTemplate::Joined(joined.clone()));
        }
        if !words
            .iter()
            .any(|word| word == WORDS || word.contains("{command}"))
        {
            return Err(WrongTemplate::Nothing);
        }
        Ok(Self(words))
    }

    /// Returns the command line for a pane that runs `words`.
    fn filled(&self, pane: &NewPane, words: &[OsString]) -> Vec<OsString> {
        let command = quoted(words);
        let values: [&OsStr; 4] = [
            pane.title.as_ref(),
            pane.color.as_ref(),
            pane.cwd.as_os_str(),
            command.as_os_str(),
        ];
        let mut line = Vec::new();
        for word in &self.0 {
            if word == WORDS {
                line.extend(words.iter().cloned())
            } else {
                line.push(filled(word, &values))
            }
        }
        line
    }
}

/// Returns what looks like a placeholder: letters in braces. Other braces stand for themselves.
fn braced(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices('{').filter_map(|(at, _)| {
        let place = word.get(at..=at + word.get(at..)?.find('}')?)?;
        let inner = place
            .get(1..place.len() - 1)
            .filter(|inner| !inner.is_empty())?;
        inner
            .chars()
            .all(|c| c.is_ascii_alphabetic() || c == '.')
            .then_some(place)
    })
}

/// Fills in the placeholders of a word from left to right. Values are not scanned again.
fn filled(word: &str, values: &[&OsStr; 4]) -> OsString {
    let mut done = OsString::new();
    let mut rest = word;
    while let Some((at, place)) = (0..PLACES.len())
        .filter_map(|place| Some((rest.find(PLACES[place])?, place)))
        .min()
    {
        done.push(&rest[..at]);
        done.push(values[place]);
        rest = &rest[at + PLACES[place].len()..];
    }
    done.push(rest);
    done
}

/// Quotes words for a shell.
fn quoted(words: &[OsString]) -> OsString {
    let mut line = Vec::new();
    for word in words {
        if !line.is_empty() {
            line.push(b' ');
        }
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:=,@%+".contains(byte);
        if !word.is_empty() && word.as_bytes().iter().all(is_plain) {
            line.extend_from_slice(word.as_bytes());
            continue;
        }
        line.push(b'\'');
        for byte in word.as_bytes() {
            if *byte == b'\'' {
                line.extend_from_slice(b"'\\''")
            } else {
                line.push(*byte)
            }
        }
        line.push(b'\'');
    }
    OsString::from_vec(line)
}

/// Panes that a command opens.
#[derive(Clone, Debug)]
pub struct CommandPanes(Arc<PaneCommand>);

/// Why the command opened no pane.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    NoBudget(#[from] NoBudget),
    #[error("teams.paneCommand is empty")]
    Empty,
    #[error(
        "no pane for {title}: {program} {why}; teams.paneCommand in your settings says how panes are opened"
    )]
    NoPane {
        title: String,
        program: String,
        why: ProgramError,
    },
}

/// What happened to the program instead; follows its name in a sentence.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error("failed ({status}): {said}")]
    Failed { status: ExitStatus, said: String },
    #[error("is not on this machine, or not in the PATH")]
    Missing,
    #[error(
        "had not returned after {} s, and was ended; it should return when the pane is there \
         (`setsid -f` before it makes it do so)",
        .0.as_secs()
    )]
    Late(Duration),
    #[error("cannot be run: {0}")]
    Io(#[source] io::Error),
    #[error("printed more than can be read")]
    TooMuch,
}

#[derive(Debug)]
struct PaneCommand {
    template: Template,
    launch: Launch,
}

impl CommandPanes {
    /// Returns panes that this command opens.
    pub fn new(template: Template, launch: Launch) -> Self {
        Self(Arc::new(PaneCommand { template, launch }))
    }
}

impl Panes for CommandPanes {
    fn name(&self) -> &str {
        "command"
    }

    fn open(&self, pane: NewPane) -> BoxFuture<'_, Result<(), String>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let opened = spawn_blocking(move || inner.open(&pane)).await;
            let opened = opened.map_err(|error| error.to_string())?;
            opened.map_err(|error| error.to_string())
        })
    }
}

impl PaneCommand {
    /// Returns what runs in the pane. The terminal does not inherit posse's environment, and
    /// secrets cannot be passed on a command line.
    fn words(&self, pane: &NewPane) -> Result<Vec<OsString>, NoBudget> {
        let told = self
            .launch
            .environment
            .iter()
            .filter(|variable| !variable.secret);
        let mut words: Vec<OsString> = told.map(super::launch::Variable::setting).collect();
        if !words.is_empty() {
            words.insert(0, "env".into());
        }
        words.extend(self.launch.command_line(pane)?);
        Ok(words)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the user's pane command is started"
    )]
    fn open(&self, pane: &NewPane) -> Result<(), CommandError> {
        let line = self.template.filled(pane, &self.words(pane)?);
        let (program, arguments) = line.split_first().ok_or(CommandError::Empty)?;
        let named = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&pane.cwd);
        let why = match child::run(command, None, LIMIT) {
            Ok(heard) if heard.status.success() => return Ok(()),
            Ok(heard) => {
                let said = String::from_utf8_lossy(&heard.said).replace('\n', " ");
                let said: String = said.trim().chars().take(LONGEST).collect();
                ProgramError::Failed {
                    status: heard.status,
                    said,
                }
            }
            Err(Unheard::Missing) => ProgramError::Missing,
            Err(Unheard::Late(limit)) => ProgramError::Late(limit),
            Err(Unheard::Io(error)) => ProgramError::Io(error),
            Err(Unheard::TooMuch) => ProgramError::TooMuch,
        };
        Err(CommandError::NoPane {
            title: pane.title.clone(),
            program: named,
            why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::launch::tests::pane;
    use super::*;

    fn template(words: &[&str]) -> Result<Template, WrongTemplate> {
        Template::new(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn a_template_that_opens_nothing_is_refused() {
        assert_eq!(template(&[]), Err(WrongTemplate::Empty));
        assert_eq!(template(&["term", "{title}"]), Err(WrongTemplate::Nothing));
        assert_eq!(
            template(&["term", "{argv}"]),
            Err(WrongTemplate::Unknown("{argv}".into()))
        );
        let inside = template(&["term", "--title=x {titel}", "{command}"]);
        assert_eq!(inside, Err(WrongTemplate::Unknown("{titel}".into())));
        let joined = template(&["term", "--run={argv...}"]);
        assert_eq!(joined, Err(WrongTemplate::Joined("--run={argv...}".into())));
        assert!(template(&["term", "--json={\"a\": {}}", "${}{1}", "{command}"]).is_ok());
    }

    #[test]
    fn places_are_filled_without_a_shell() {
        let words = ["posse", "a b", "it's", ""].map(OsString::from);
        let odd = NewPane {
            title: "{cwd} $(x)".into(),
            ..pane()
        };
        let spread = template(&[
            "term",
            "--title={title}/{color}",
            "{cwd}",
            "--",
            "{argv...}",
        ])
        .unwrap();
        assert_eq!(
            spread.filled(&odd, &words),
            [
                "term",
                "--title={cwd} $(x)/orange",
                "/work/it's",
                "--",
                "posse",
                "a b",
                "it's",
                ""
            ]
        );
        let one = template(&["term", "-e", "exec {command}"]).unwrap();
        assert_eq!(
            one.filled(&odd, &words),
            ["term", "-e", "exec posse 'a b' 'it'\\''s' ''"]
        );
    }
}
