//! Help: the overview, examples of commands, pages of the manual, man pages.

mod examples;
pub(crate) mod man;
mod overview;
pub(crate) mod topics;

use std::ffi::OsString;

use clap::Command;

/// The heading of examples, as clap writes headings.
const EXAMPLES: &str = "\x1b[1m\x1b[4mExamples:\x1b[0m";

/// Returns the command that parses these words. Only if they ask for help, it has all of that: most
/// starts need none.
pub(crate) fn for_words(command: Command, words: &[OsString]) -> Command {
    let asks = |word: &OsString| ["-h", "--help", "help"].iter().any(|help| word == help);
    // A group alone shows its help, too.
    let is_group = matches!(words, [_, word] if !word.as_encoded_bytes().starts_with(b"-"));
    match is_group || words.iter().any(asks) {
        true => complete(command),
        false => command,
    }
}

/// Returns the command with the overview and with examples of all commands.
pub(crate) fn complete(command: Command) -> Command {
    let overview = overview::text(&command, crate::output::width());
    let options = long_options(&command);
    let command = command.mut_subcommand("team", |team| {
        team.mut_subcommand("run", |run| without_shared(run, &options))
    });
    examples::added(command).override_help(overview)
}

/// Returns a command that shows only the best known of the options it shares with `posse`.
fn without_shared(command: Command, shared: &[String]) -> Command {
    let is_rare = |long: &str| shared.iter().any(|it| it == long) && !overview::has(long);
    let command = command.mut_args(|it| {
        let hide = it.get_long().is_some_and(is_rare) || it.is_hide_set();
        it.hide(hide)
    });
    command.after_help("All options that `posse help run` lists can be given, too.")
}

fn long_options(command: &Command) -> Vec<String> {
    let options = command.get_arguments().filter_map(clap::Arg::get_long);
    options.map(str::to_owned).collect()
}

/// Returns the help of `posse` with all flags, but without the commands.
pub(crate) fn of_running(command: Command) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    let command = examples::added(command);
    let command = names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |it| it.hide(true))
    });
    command.override_usage("posse [OPTIONS] [PROMPT]")
}
