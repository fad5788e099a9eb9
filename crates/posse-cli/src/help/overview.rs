//! What `posse --help` shows: on one screen, with the commands by what they are for.

use clap::Command;
use clap::builder::StyledStr;
use posse_tui::text::{columns, wrap};

use super::examples;

/// The width where there is no terminal.
const USUAL: usize = 100;

/// Commands by what they are for. Those of [`MORE`] are named only.
pub(super) const GROUPS: [(&str, &[&str]); 3] = [
    ("Run", &["team", "board", "attach", "requests", "ask"]),
    ("Look", &["sessions", "cost", "task", "mail"]),
    (
        "Set up",
        &["doctor", "trust", "agents", "skills", "hooks", "mcp"],
    ),
];

/// Commands that are rarely typed. `help` is named at the end.
pub(super) const MORE: &[&str] = &[
    "ask-model",
    "cache",
    "clean",
    "completions",
    "logout",
    "schema",
    "scripted-model",
    "store",
    "uninstall",
    "worker",
    "worktrees",
];

/// The flags that most people need, with fewer words than in the whole list.
pub(super) const FLAGS: [(&str, &str); 9] = [
    ("-p, --print", "Print the answer to one prompt, and exit"),
    (
        "-c, --continue",
        "Continue the newest session of this directory",
    ),
    (
        "-r, --resume [ID]",
        "Continue a session, or choose one from a list",
    ),
    (
        "--model MODEL",
        "Choose the model: opus, sonnet, haiku, or its full name",
    ),
    (
        "--permission-mode MODE",
        "Allow more or less: plan, default, acceptEdits, …",
    ),
    (
        "--allowed-tools RULES",
        "Allow calls without asking: \"Bash(cargo *),Edit\"",
    ),
    (
        "--max-budget-usd X",
        "Make no call that could cost more than this",
    ),
    ("--output-format FORMAT", "Print text, json or stream-json"),
    ("-h, --help", "Print this, or the help of a command"),
];

/// Where to read on.
const MANUAL: &str =
    "`posse help run` lists all options, `posse help` all commands and the pages of the manual.";

/// Columns of the names of groups, commands and flags.
const GROUP: usize = 8;
const NAME: usize = 10;
const FLAG: usize = 24;

/// Returns true if the overview has an option with this long name.
pub(super) fn has(long: &str) -> bool {
    let long = format!("--{long}");
    let words = |(flag, _): &(&str, &str)| flag.split(' ').any(|word| word == long);
    FLAGS.iter().any(words)
}

/// Returns the overview in lines of this width.
pub(super) fn text(command: &Command, width: Option<usize>) -> StyledStr {
    let width = width.unwrap_or(USUAL).clamp(40, USUAL);
    let mut text = format!(
        "posse runs teams of coding agents.\n\n\
         {} posse [OPTIONS] [PROMPT], or posse COMMAND\n\n{}\n",
        heading("Usage:"),
        heading("Commands:")
    );
    for (group, names) in GROUPS {
        for (number, name) in names.iter().enumerate() {
            let group = if number == 0 { group } else { "" };
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let head = format!("  {group:GROUP$}{}", strong(name, NAME));
            text.push_str(&row(&head, &about, width));
        }
    }
    let more = format!("  {:GROUP$}", "More");
    text.push_str(&row(&more, &MORE.join(", "), width));
    text.push_str(&format!("\n{}\n", heading("Options:")));
    for (flag, about) in FLAGS {
        text.push_str(&row(&format!("  {}", strong(flag, FLAG)), about, width));
    }
    text.push_str(&format!("\n{}\n", super::EXAMPLES));
    let all = examples::all();
    for example in all.get("posse").into_iter().flatten().skip(1).take(2) {
        text.push_str(&row("  ", example.line, width));
    }
    text.push('\n');
    text.push_str(&row("", MANUAL, width));
    StyledStr::from(text.trim_end().to_owned())
}

/// Returns a line whose rest is wrapped beside its head.
fn row(head: &str, rest: &str, width: usize) -> String {
    let indent = columns(&posse_tui::text::without_escapes(head));
    let room = u16::try_from(width.saturating_sub(indent)).unwrap_or(u16::MAX);
    let lines = wrap(&rest.into(), room, 0);
    let lines: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
    let between = format!("\n{:indent$}", "");
    format!("{head}{}\n", lines.join(&between))
}

fn heading(words: &str) -> String {
    format!("\x1b[1m\x1b[4m{words}\x1b[0m")
}

/// Returns a name in so many columns.
fn strong(name: &str, columns: usize) -> String {
    let rest = columns.saturating_sub(name.len()).max(1);
    format!("\x1b[1m{name}\x1b[0m{:rest$}", "")
}

#[cfg(test)]
mod tests;
