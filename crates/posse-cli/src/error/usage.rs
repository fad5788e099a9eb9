//! Invalid command lines for which clap's own messages would not help.

use clap::error::ErrorKind;
use clap::{ArgMatches, Command};
use posse_port::closest;

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
    let meant = closest(word, &names).map_or_else(
        || "; a prompt of one word needs -p".to_owned(),
        |name| format!(" (did you mean `{name}`? a prompt of one word needs -p)"),
    );
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
    fn a_mistyped_command_is_told_from_a_prompt() {
        let said = complaint("posse|sesions|list|--json").unwrap();
        assert!(
            said.contains("no command `sesions` (did you mean `sessions`?"),
            "{said}"
        );
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
