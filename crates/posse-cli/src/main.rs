//! The posse binary: arguments, environment and wiring. What it can do lives in the libraries.

mod assemble;
mod commands;
mod config;
mod definitions;
mod error;
mod headless;
mod output;
mod present;
mod select;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::usage::{self, UsageError};

/// posse runs teams of coding agents.
///
/// `posse -p "fix the failing test"` has an agent work in this directory and prints what it says.
#[derive(Parser)]
#[command(
    name = "posse",
    version,
    arg_required_else_help = true,
    propagate_version = true,
    args_conflicts_with_subcommands = true
)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: commands::run::Run,
}

#[derive(Subcommand)]
enum Command {
    Sessions(commands::sessions::Sessions),
    Team(commands::team::TeamCommand),
    Worker(commands::worker::WorkerCommand),
    Task(commands::task::TaskCommand),
    Mail(commands::mail::MailCommand),
    Agents(commands::agents::Agents),
    Skills(commands::skills::Skills),
    Worktrees(commands::worktrees::Worktrees),
    Cost(commands::cost::CostCommand),
    Cache(commands::cache::CacheCommand),
    Store(commands::store::StoreCommand),
    Ask(commands::ask::AskCommand),
    AskModel(commands::ask_model::AskModel),
    ScriptedModel(commands::scripted_model::ScriptedModel),
    Doctor(commands::doctor::Doctor),
    Completions(commands::completions::Completions),
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(done) = commands::guard::asked(&words) {
        return done;
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(error) = usage::no_such_command(&mut Args::command(), &words) {
        error.exit();
    }
    let matches = Args::command().get_matches();
    let json = usage::wants_json(&matches);
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match args.command {
        None => args.run.run(),
        Some(Command::Sessions(command)) => command.run(),
        Some(Command::Team(command)) => command.run(),
        Some(Command::Worker(command)) => command.run(),
        Some(Command::Task(command)) => command.run(),
        Some(Command::Mail(command)) => command.run(),
        Some(Command::Agents(command)) => command.run(),
        Some(Command::Skills(command)) => command.run(),
        Some(Command::Worktrees(command)) => command.run(),
        Some(Command::Cost(command)) => command.run(),
        Some(Command::Cache(command)) => command.run(),
        Some(Command::Store(command)) => command.run(),
        Some(Command::Ask(command)) => command.run(),
        Some(Command::AskModel(command)) => command.run(),
        Some(Command::ScriptedModel(command)) => command.run(),
        Some(Command::Doctor(command)) => command.run(),
        Some(Command::Completions(command)) => command.run(Args::command()),
    };
    result.unwrap_or_else(|error| match error.downcast::<UsageError>() {
        Ok(usage) => usage.into_clap(Args::command()).exit(),
        Err(error) => error::report(&error, json),
    })
}
