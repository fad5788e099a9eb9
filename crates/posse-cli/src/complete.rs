//! Completion of a command line: what could stand where the cursor is.
//!
//! A script in the shell ([`CompletionShell::script`]) calls posse with [`VARIABLE`] set. Nothing
//! is created or started for an answer, and there are no errors: what cannot be found out is left
//! out.

mod kind;
mod line;
mod request;
mod sources;
mod values;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap_complete::engine::{CompletionCandidate, complete};

use self::request::CompletionRequest;
use crate::config::environment;
use crate::output::one_line;
use crate::output::transcript::fitted;

/// Names the shell that asks.
const VARIABLE: &str = "POSSE_COMPLETE";

/// The widest description.
const WIDEST: usize = 72;

/// A shell whose script asks posse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

impl CompletionShell {
    fn named(name: &str) -> Option<Self> {
        match name {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            _ => None,
        }
    }

    /// Returns what the shell has to read once.
    pub(crate) fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("complete/posse.bash"),
            Self::Zsh => include_str!("complete/posse.zsh"),
            Self::Fish => include_str!("complete/posse.fish"),
        }
    }
}

/// A word that could stand there, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    value: String,
    about: String,
}

/// Answers a shell that asks, if one does.
pub(crate) fn asked(
    words: &[OsString],
    command: impl FnOnce() -> clap::Command,
) -> Option<ExitCode> {
    let shell = CompletionShell::named(&environment::variable(VARIABLE)?)?;
    let [_, dashes, given @ ..] = words else {
        return None;
    };
    if dashes != "--" {
        return None;
    }
    let given = given.iter().map(|word| word.to_string_lossy().into_owned());
    let given = given.collect();
    let request = CompletionRequest::new(shell, given);
    let found = request.map(|request| request.answer(&candidates(&request, command())));
    // Nobody reads an error.
    let _ = std::io::stdout().write_all(found.unwrap_or_default().as_bytes());
    Some(ExitCode::SUCCESS)
}

/// Returns what fits, in the order in which it is shown.
fn candidates(request: &CompletionRequest, command: clap::Command) -> Vec<Candidate> {
    let cwd = environment::working_directory().ok();
    let mut command = values::with_values(command, request, cwd.as_deref());
    let words = request.words.iter().map(OsString::from).collect();
    let last = request.words.len() - 1;
    let takes_command = takes_command(&command, &request.words[1..last]);
    let found = complete(&mut command, words, last, cwd.as_deref()).unwrap_or_default();
    let is_command = |it: &CompletionCandidate| {
        let id = it.get_id();
        id.is_some_and(|id| id.starts_with("command::"))
    };
    let found = found
        .iter()
        .filter(|it| takes_command || !is_command(it))
        .filter_map(candidate);
    let mut found: Vec<Candidate> = found.collect();
    // Fifty flags would hide what a person looks for who has not typed a dash.
    let is_flag = |it: &Candidate| it.value.starts_with('-');
    if !request.current().starts_with('-') && !found.iter().all(is_flag) {
        found.retain(|it| !is_flag(it));
    }
    found
}

/// Returns true if a command can follow these words: posse's own come first or not at all.
fn takes_command(posse: &clap::Command, words: &[String]) -> bool {
    words.is_empty()
        || words
            .iter()
            .any(|word| posse.find_subcommand(word).is_some())
}

/// Returns a candidate as a line can have it.
fn candidate(found: &CompletionCandidate) -> Option<Candidate> {
    let value = found.get_value().to_str()?;
    let help = found.get_help().map(ToString::to_string);
    let about = help.unwrap_or_default();
    let about = fitted(&one_line(about.lines().next().unwrap_or_default()), WIDEST);
    (!value.contains(char::is_control)).then(|| Candidate {
        value: value.to_owned(),
        about,
    })
}

#[cfg(test)]
mod tests;
