//! `posse skills`.

mod check;
mod list;
mod show;

use std::process::ExitCode;

use crate::config::environment;
use crate::definitions::skills::SkillSources;

/// Look at the skills and commands that can be called here.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Skills {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Check(check::Check),
}

impl Skills {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let sources: SkillSources = SkillSources::at(&environment::working_directory()?);
        match self.command {
            Command::List(command) => command.run(&sources),
            Command::Show(command) => command.run(&sources),
            Command::Check(command) => command.run(&sources),
        }
    }
}
