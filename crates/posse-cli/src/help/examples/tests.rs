//! Every command has examples, and they are right.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};

use super::*;

/// Returns all commands that users call, by their words; groups included.
fn commands() -> Vec<String> {
    fn walk(command: &Command, words: &str, all: &mut Vec<String>) {
        all.push(key(words).to_owned());
        for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            let words = format!("{words} {}", below.get_name());
            walk(below, words.trim_start(), all);
        }
    }
    let mut all = Vec::new();
    walk(&crate::Args::command(), "", &mut all);
    all
}

#[test]
fn every_command_has_two_examples_in_its_help() {
    let examples = super::all();
    let poor: Vec<String> = commands()
        .into_iter()
        .filter(|command| examples.get(command.as_str()).map_or(0, Vec::len) < 2)
        .collect();
    assert_eq!(poor, [""; 0], "commands with fewer than two examples");
    let known: BTreeSet<String> = commands().into_iter().collect();
    let strange: Vec<_> = examples.keys().filter(|it| !known.contains(**it)).collect();
    assert_eq!(strange, [&""; 0], "examples of no command");

    let help = |words: &[&str]| {
        let root = crate::help::complete(crate::Args::command());
        let found = words.iter().fold(root, |command, word| {
            command.find_subcommand(word).unwrap().clone()
        });
        found.clone().render_help().to_string()
    };
    for words in [
        &["team", "run"][..],
        &["team"],
        &["mcp", "serve"],
        &["cost"],
    ] {
        let help = help(words);
        for Example { about, line } in &examples[words.join(" ").as_str()] {
            assert!(help.contains("Examples:"), "{help}");
            let told = format!("  {about}:\n    {line}");
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(squeezed(&help).contains(&squeezed(&told)), "{told}\n{help}");
        }
    }
}

/// Returns the words of each call of posse in a line for a shell.
fn calls(line: &str) -> Vec<Vec<String>> {
    let (mut calls, mut words, mut word, mut quote) = (vec![], vec![], None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if c == open => quote = None,
            (None, ' ') => words.extend(word.take()),
            // The number of what is redirected is no argument.
            (None, '>') if word.as_deref() == Some("2") => word = None,
            (None, '|' | '&' | '>') => {
                words.extend(word.take());
                calls.push(std::mem::take(&mut words));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    calls.push(words);
    calls.retain(|words| words.first().is_some_and(|word| word == "posse"));
    calls
}

#[test]
fn the_parser_takes_every_example() {
    let mut parsed = 0;
    for (command, examples) in super::all() {
        for Example { about, line } in examples {
            let calls = calls(line);
            assert!(!calls.is_empty(), "{command}: {line}");
            for words in calls {
                let taken = crate::Args::command().try_get_matches_from(&words);
                assert!(taken.is_ok(), "{line}: {}", taken.unwrap_err());
                parsed += 1;
            }
            let first = about.split(' ').next().unwrap_or_default();
            assert!(first.starts_with(char::is_uppercase), "{about}");
            assert!(!about.ends_with(['.', ':']), "{about}");
        }
    }
    assert!(parsed > 140, "{parsed}");
}

#[test]
fn no_help_sends_people_to_files_that_they_lack() {
    fn walk(mut command: Command, faults: &mut Vec<String>) {
        let below: Vec<Command> = command.get_subcommands().cloned().collect();
        let help = command.render_long_help().to_string();
        let name = command.get_name();
        let lines = help.lines().filter(|line| line.contains("docs/"));
        faults.extend(lines.map(|line| format!("{name}: {line}")));
        for command in below {
            walk(command, faults);
        }
    }
    let mut faults = Vec::new();
    walk(crate::Args::command(), &mut faults);
    assert_eq!(faults, [""; 0]);
}
