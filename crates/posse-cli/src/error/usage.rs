//! Invalid command lines for which clap's own messages would not help.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use posse_port::closest;

use super::USAGE;
use super::foreign_words::{instead_of_command, instead_of_flag};
use crate::output::say;

/// Returns true if the given command has `--json`.
pub(crate) fn wants_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, matches)) => wants_json(matches),
        None => matches
            .try_get_one("json")
            .ok()
            .flatten()
            .copied()
            .unwrap_or(false),
    }
}

/// A command line that clap accepts but that makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct UsageError {
    /// The subcommand it is about, from the root down.
    command: Vec<&'static str>,
    kind: ErrorKind,
    message: String,
}

impl UsageError {
    pub(crate) fn new(
        command: &[&'static str],
        kind: ErrorKind,
        message: impl Into<String>,
    ) -> Self {
        Self {
            command: command.to_vec(),
            kind,
            message: message.into(),
        }
    }

    /// Returns the error as clap would report it, with the usage of its subcommand.
    pub(crate) fn into_clap(self, mut root: Command) -> clap::Error {
        // Only a built command knows its full name in the usage.
        root.build();
        for name in self.command {
            let found = root
                .get_subcommands()
                .find(|it| it.get_name() == name)
                .cloned();
            root = found.unwrap_or(root);
        }
        root.error(self.kind, self.message)
    }
}

/// Prints what is wrong with a command line, or the help that was asked for, and returns the exit
/// code.
pub(crate) fn report(error: clap::Error, command: &Command, words: &[String]) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let error = explained(error, command, words);
    say(error.render().ansi().to_string().trim_end());
    ExitCode::from(USAGE)
}

/// Says what posse has in place of a flag that it does not know.
fn explained(mut error: clap::Error, command: &Command, words: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    // A prompt that begins with a dash is rare, and a mistyped flag is not.
    error.remove(ContextKind::Suggested);
    let first = words.get(1);
    let is_run = first.is_none_or(|word| command.find_subcommand(word).is_none());
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if is_run => flag.clone(),
        _ => return error,
    };
    if let Some(instead) = instead_of_flag(&flag) {
        error.remove(ContextKind::SuggestedArg);
        // It names the flag that only looks similar.
        error.remove(ContextKind::Usage);
        let tip = format!("in posse: {instead}");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Returns the error for a first word that is not a command. A prompt in its place contains
/// blanks, or there is a `-p`.
pub(crate) fn no_such_command(command: &mut Command, arguments: &[String]) -> Option<clap::Error> {
    let word = arguments.get(1).filter(|word| !word.starts_with('-'))?;
    let prints = |word: &String| {
        word == "--print"
            || (word.starts_with('-') && !word.starts_with("--") && word.contains('p'))
    };
    if word.is_empty() || word.contains(char::is_whitespace) || arguments.iter().any(prints) {
        return None;
    }
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    if names.contains(&word.as_str()) {
        return None;
    }
    let meant = match (instead_of_command(word), closest(word, &names)) {
        (Some(instead), _) => format!("; {instead}"),
        (None, Some(name)) => format!(" (did you mean `{name}`? a prompt of one word needs -p)"),
        (None, None) => "; a prompt of one word needs -p".to_owned(),
    };
    Some(command.error(
        ErrorKind::InvalidSubcommand,
        format!("there is no command `{word}`{meant}"),
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn complaint(line: &str) -> Option<String> {
        let arguments: Vec<String> = line.split('|').map(str::to_owned).collect();
        no_such_command(&mut crate::Args::command(), &arguments).map(|error| {
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        })
    }

    #[test]
    fn a_flag_of_another_program_names_what_posse_has() {
        let complaint = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let mut command = crate::Args::command();
            let error = command.try_get_matches_from_mut(&words).unwrap_err();
            explained(error, &command, &words).to_string()
        };
        for (line, said) in [
            ("posse -p x --ide", "`posse mcp serve`"),
            ("posse -p x --full-auto", "--permission-mode acceptEdits"),
            ("posse -p x --output-schema=a", "--json-schema"),
            ("posse -p x --modle m", "'--model'"),
        ] {
            let complaint = complaint(line);
            assert!(complaint.contains(said), "{complaint}");
        }
        for line in ["posse -p x --foo", "posse sessions list --ide"] {
            let complaint = complaint(line);
            assert!(!complaint.contains("tip: to pass"), "{complaint}");
            assert!(!complaint.contains("in posse"), "{complaint}");
        }
    }

    #[test]
    fn a_mistyped_command_is_told_from_a_prompt() {
        let said = complaint("posse|sesions|list|--json").unwrap();
        assert!(
            said.contains("no command `sesions` (did you mean `sessions`?"),
            "{said}"
        );
        let said = complaint("posse|chat").unwrap();
        assert!(
            said.contains("no command `chat`; `posse` alone opens"),
            "{said}"
        );
        assert!(!complaint("posse|cats").unwrap().contains("did you mean"));
        assert!(complaint("posse|dotcor").unwrap().contains("`doctor`"));
        assert!(
            complaint("posse|frobnicate")
                .unwrap()
                .contains("a prompt of one word needs -p")
        );
        for line in [
            "posse",
            "posse|doctor",
            "posse|help",
            "posse|fix|-p",
            "posse|-p|sesions",
            "posse|fix it",
        ] {
            assert_eq!(complaint(line), None, "{line}");
        }
    }
}
