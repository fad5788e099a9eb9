//! Examples of commands, from one file.

use std::collections::BTreeMap;

use clap::Command;
use clap::builder::StyledStr;

use super::EXAMPLES;

/// Examples of all commands.
const TEXT: &str = include_str!("examples.txt");

/// An example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Example {
    /// What it does.
    pub(super) about: &'static str,
    /// A line for a shell.
    pub(super) line: &'static str,
}

/// Returns all examples by their command, which is named by its words without the program; the
/// program itself by its name.
pub(super) fn all() -> BTreeMap<&'static str, Vec<Example>> {
    let mut all: BTreeMap<&str, Vec<Example>> = BTreeMap::new();
    let (mut command, mut about) = ("", "");
    let lines = TEXT.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix("    "), line.strip_prefix("  ")) {
            (Some(line), _) => all
                .entry(command)
                .or_default()
                .push(Example { about, line }),
            (None, Some(words)) => about = words,
            (None, None) => command = line,
        }
    }
    all
}

/// Returns the key of a command by its words.
pub(super) fn key(words: &str) -> &str {
    if words.is_empty() { "posse" } else { words }
}

/// Returns a command and all its subcommands with their examples.
pub(super) fn added(command: Command) -> Command {
    below(command, "", &all())
}

fn below(
    command: Command,
    words: &str,
    examples: &BTreeMap<&'static str, Vec<Example>>,
) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    let own = examples.get(key(words)).map_or(&[][..], Vec::as_slice);
    let command = with_examples(command, own);
    names.into_iter().fold(command, |command, name| {
        let words = format!("{words} {name}");
        command.mut_subcommand(&name, |it| below(it, words.trim_start(), examples))
    })
}

fn with_examples(command: Command, examples: &[Example]) -> Command {
    if examples.is_empty() {
        return command;
    }
    let mut text = command.get_after_help().map(|it| it.ansi().to_string());
    let text = text.get_or_insert_default();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(EXAMPLES);
    for Example { about, line } in examples {
        text.push_str(&format!("\n  {about}:\n    {line}"));
    }
    command.after_help(StyledStr::from(std::mem::take(text)))
}

#[cfg(test)]
mod tests;
