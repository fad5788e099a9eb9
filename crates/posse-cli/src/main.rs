//! The posse binary: arguments, environment and wiring. What it can do lives in the libraries.

mod commands;
mod environment;
mod hint;
mod output;
mod provider;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// posse runs teams of coding agents.
#[derive(Parser)]
#[command(name = "posse", version, arg_required_else_help = true, propagate_version = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    AskModel(commands::ask_model::AskModel),
    ScriptedModel(commands::scripted_model::ScriptedModel),
    Doctor(commands::doctor::Doctor),
    Completions(commands::completions::Completions),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.command {
        Command::AskModel(command) => command.run(),
        Command::ScriptedModel(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Completions(command) => command.run(),
    };
    result.unwrap_or_else(|error| hint::report(&error))
}
