//! `posse hooks`.

mod check;
mod list;
mod try_event;

use std::path::PathBuf;
use std::process::ExitCode;

use posse_runtime::definition::skill::Skill;
use posse_runtime::hook::{HookScope, HookSet};

use crate::assemble::hooks;
use crate::config::environment;
use crate::config::hook_programs::ProgramSearch;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::{FlagSettings, Settings};
use crate::definitions::skills::SkillSources;
use crate::definitions::{AgentSources, DefinitionSet, InlineAgents};

/// Show, check and try the hooks that run here.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct HooksCommand {
    #[command(subcommand)]
    command: HooksSubcommand,
}

#[derive(clap::Subcommand)]
enum HooksSubcommand {
    List(list::ListHooks),
    Check(check::CheckHooks),
    Try(try_event::TryHooks),
}

impl HooksCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            HooksSubcommand::List(command) => command.run(),
            HooksSubcommand::Check(command) => command.run(),
            HooksSubcommand::Try(command) => command.run(),
        }
    }
}

/// The hooks of a directory.
struct LocalHooks {
    cwd: PathBuf,
    settings: Settings,
    agents: DefinitionSet,
    skills: DefinitionSet<Skill>,
    /// All that are declared, in the order in which they count.
    set: HookSet,
    search: ProgramSearch,
}

impl LocalHooks {
    /// Reads what an agent would read here. `flag` is the value of `--settings`.
    fn here(flag: Option<String>) -> anyhow::Result<Self> {
        let cwd = environment::working_directory()?;
        let places = SearchPaths::at(&cwd);
        let flags = FlagSettings {
            settings: flag,
            ..FlagSettings::default()
        };
        let settings = Settings::load(&places, flags)?;
        let agents = AgentSources::new(places.clone(), InlineAgents::default()).load();
        let skills = SkillSources::new(places.clone()).load();
        Ok(Self {
            set: hooks::declared(&settings.hooks, &agents, &skills),
            search: ProgramSearch::new(&places),
            cwd,
            settings,
            agents,
            skills,
        })
    }

    /// Returns why hooks that are declared are left out, if some are.
    fn left_out(&self) -> Option<&'static str> {
        match self.settings.hooks.policy.scope {
            HookScope::All => None,
            HookScope::Managed => Some("only hooks of managed settings run here"),
            HookScope::Nothing => Some("managed settings have switched all hooks off"),
        }
    }
}
