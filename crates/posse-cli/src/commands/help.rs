//! `posse help`.

use std::process::ExitCode;

use clap::Command;
use clap::error::ErrorKind;
use posse_port::closest;

use crate::error::usage::UsageError;
use crate::help::{self, topics};
use crate::output::{columns, print, tame, width};

/// The word that stands for the flags of running, which is no command.
const RUN: &str = "run";

/// List the commands and the pages of the manual, or print one of them.
///
/// A word that is a page and a command, such as `agents`, names the page; `posse agents --help` is
/// the help of the command.
#[derive(clap::Args)]
pub(crate) struct HelpCommand {
    /// Page, or the words of a command; `run` lists all options of running
    #[arg(value_name = "TOPIC")]
    words: Vec<String>,
}

impl HelpCommand {
    /// Prints help about `posse`, the whole command line.
    pub(crate) fn run(self, posse: Command) -> anyhow::Result<ExitCode> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let text = match words[..] {
            [] => list(&posse),
            [RUN] => long(help::of_running(posse)),
            [word] if let Some(topic) = topics::named(word) => {
                topic.text(width().map(|_| columns()))
            }
            _ => long(meant(&posse, &words)?),
        };
        print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn long(mut command: Command) -> String {
    format!("{}\n", command.render_long_help().ansi())
}

/// Returns the command with these words.
fn meant(posse: &Command, words: &[&str]) -> Result<Command, UsageError> {
    let mut root = help::complete(posse.clone());
    // Only a built command knows its full name in the usage.
    root.build();
    let mut found = &root;
    for word in words {
        found = match found.find_subcommand(word) {
            Some(command) => command,
            None => return Err(unknown(found, word, words.len() == 1)),
        };
    }
    Ok(found.clone())
}

fn unknown(room: &Command, word: &str, is_topic: bool) -> UsageError {
    let commands = room.get_subcommands().map(Command::get_name);
    let pages = topics::all().map(|topic| topic.name);
    let pages = pages.chain([RUN]).filter(|_| is_topic);
    let names: Vec<&str> = commands.chain(pages).collect();
    let meant = match closest(word, &names) {
        Some(name) => format!(" (did you mean `{name}`? `posse help` lists all)"),
        None => "; `posse help` lists all".to_owned(),
    };
    let what = format!("there is no page or command `{}`{meant}", tame(word));
    UsageError::new(&["help"], ErrorKind::InvalidValue, what)
}

/// Returns all commands and pages.
fn list(posse: &Command) -> String {
    let mut text = format!("{}\n", heading("Pages: posse help PAGE"));
    for topic in topics::all() {
        text.push_str(&line(topic.name, topic.about));
    }
    text.push_str(&format!(
        "\n{}\n",
        heading("Commands: posse COMMAND --help")
    ));
    text.push_str(&line(RUN, "All options of running, with `posse help run`"));
    for command in posse.get_subcommands().filter(|it| !it.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string);
        text.push_str(&line(command.get_name(), &about.unwrap_or_default()));
    }
    text
}

fn heading(words: &str) -> String {
    format!("\x1b[1m{words}\x1b[0m")
}

fn line(name: &str, about: &str) -> String {
    format!("  {name:16} {about}\n")
}
