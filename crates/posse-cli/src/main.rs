//! The posse binary: arguments, environment and wiring. What it can do lives in the libraries.

mod assemble;
mod board;
mod commands;
mod complete;
mod config;
mod definitions;
mod error;
mod headless;
mod help;
mod interactive;
mod output;
mod present;
mod select;
mod serve;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::usage::{self, UsageError};

/// posse runs teams of coding agents.
///
/// `posse -p "fix the failing test"` runs an agent in this directory and prints its answer.
#[derive(Parser)]
#[command(
    name = "posse",
    version = env!("POSSE_VERSION"),
    propagate_version = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
struct Args {
    #[command(subcommand)]
    command: Option<PosseCommand>,
    #[command(flatten)]
    run: commands::run::RunCommand,
}

#[derive(Subcommand)]
enum PosseCommand {
    Sessions(commands::sessions::SessionsCommand),
    Team(commands::team::TeamCommand),
    Worker(commands::worker::WorkerCommand),
    Task(commands::task::TaskCommand),
    Mail(commands::mail::MailCommand),
    Requests(commands::requests::RequestsCommand),
    Agents(commands::agents::AgentsCommand),
    Skills(commands::skills::SkillsCommand),
    Hooks(commands::hooks::HooksCommand),
    Mcp(commands::mcp::McpCommand),
    Worktrees(commands::worktrees::WorktreesCommand),
    Clean(commands::clean::CleanCommand),
    Uninstall(commands::uninstall::UninstallCommand),
    Trust(commands::trust::TrustCommand),
    Cost(commands::cost::CostCommand),
    Cache(commands::cache::CacheCommand),
    Store(commands::store::StoreCommand),
    Ask(commands::ask::AskCommand),
    AskModel(commands::ask_model::AskModelCommand),
    ScriptedModel(commands::scripted_model::ScriptedModelCommand),
    Doctor(commands::doctor::DoctorCommand),
    Schema(commands::schema::SchemaCommand),
    Attach(commands::attach::AttachCommand),
    Board(commands::board::BoardCommand),
    Logout(commands::logout::LogoutCommand),
    Completions(commands::completions::CompletionsCommand),
    Help(commands::help::HelpCommand),
    #[command(hide = true)]
    Man(commands::man::ManCommand),
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // It maps its own user, which a process that hides its memory cannot do.
    if let Some(done) = commands::confine::asked(&words) {
        return done;
    }
    assemble::privacy::hide_memory();
    // Before clap, which has no such command: it is not for people.
    if let Some(done) = commands::guard::asked(&words) {
        return done;
    }
    if let Some(done) = complete::asked(&words, Args::command) {
        return done;
    }
    let mut posse = help::for_words(Args::command(), &words);
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(error) = usage::no_such_command(&mut posse, &words) {
        return usage::report(error, &posse, &words);
    }
    let matches = match posse.try_get_matches_from_mut(std::env::args_os()) {
        Ok(matches) => matches,
        Err(error) => return usage::report(error, &posse, &words),
    };
    // Known before the command runs, since an error must be printed as JSON, too.
    let json = usage::wants_json(&matches);
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match args.command {
        None => args.run.run(),
        Some(PosseCommand::Sessions(command)) => command.run(),
        Some(PosseCommand::Team(command)) => command.run(),
        Some(PosseCommand::Worker(command)) => command.run(),
        Some(PosseCommand::Task(command)) => command.run(),
        Some(PosseCommand::Mail(command)) => command.run(),
        Some(PosseCommand::Requests(command)) => command.run(),
        Some(PosseCommand::Agents(command)) => command.run(),
        Some(PosseCommand::Skills(command)) => command.run(),
        Some(PosseCommand::Hooks(command)) => command.run(),
        Some(PosseCommand::Mcp(command)) => command.run(),
        Some(PosseCommand::Worktrees(command)) => command.run(),
        Some(PosseCommand::Clean(command)) => command.run(),
        Some(PosseCommand::Uninstall(command)) => command.run(),
        Some(PosseCommand::Trust(command)) => command.run(),
        Some(PosseCommand::Cost(command)) => command.run(),
        Some(PosseCommand::Cache(command)) => command.run(),
        Some(PosseCommand::Store(command)) => command.run(),
        Some(PosseCommand::Ask(command)) => command.run(),
        Some(PosseCommand::AskModel(command)) => command.run(),
        Some(PosseCommand::ScriptedModel(command)) => command.run(),
        Some(PosseCommand::Doctor(command)) => command.run(),
        Some(PosseCommand::Schema(command)) => command.run(),
        Some(PosseCommand::Attach(command)) => command.run(),
        Some(PosseCommand::Board(command)) => command.run(),
        Some(PosseCommand::Logout(command)) => command.run(),
        Some(PosseCommand::Completions(command)) => command.run(Args::command()),
        Some(PosseCommand::Help(command)) => command.run(Args::command()),
        Some(PosseCommand::Man(command)) => command.run(Args::command()),
    };
    result.unwrap_or_else(|error| match error.downcast::<UsageError>() {
        // Only here the complete command line is known, which the usage is made from.
        Ok(usage) => usage.into_clap(Args::command()).exit(),
        Err(error) => error::report(&error, json),
    })
}
