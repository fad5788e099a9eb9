//! `posse skills`.

mod check;
mod list;
mod show;

use std::process::ExitCode;

use crate::config::environment;
use crate::definitions::skills::SkillSources;

/// Show the skills and commands that can be called here.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct SkillsCommand {
    #[command(subcommand)]
    command: SkillsSubcommand,
}

#[derive(clap::Subcommand)]
enum SkillsSubcommand {
    List(list::ListSkills),
    Show(show::ShowSkill),
    Check(check::CheckSkills),
}

impl SkillsCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let sources: SkillSources = SkillSources::at(&environment::working_directory()?);
        match self.command {
            SkillsSubcommand::List(command) => command.run(&sources),
            SkillsSubcommand::Show(command) => command.run(&sources),
            SkillsSubcommand::Check(command) => command.run(&sources),
        }
    }
}
