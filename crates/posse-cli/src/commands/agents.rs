//! `posse agents`.

mod check;
mod describe;
mod list;
mod new;
mod ps;
mod show;

use std::process::ExitCode;

use crate::config::environment;
use crate::config::store::StoreArgs;
use crate::definitions::{AgentSources, InlineAgents};

/// Show running agents and the agent types defined here.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct AgentsCommand {
    #[command(subcommand)]
    command: AgentsSubcommand,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum AgentsSubcommand {
    List(list::ListAgents),
    Show(show::ShowAgent),
    Check(check::CheckAgents),
    New(new::NewAgent),
    Ps(ps::ListLiveAgents),
}

impl AgentsCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            AgentsSubcommand::List(command) => command.run(&definitions()?),
            AgentsSubcommand::Show(command) => command.run(&definitions()?),
            AgentsSubcommand::Check(command) => command.run(&definitions()?),
            AgentsSubcommand::New(command) => command.run(&definitions()?),
            AgentsSubcommand::Ps(command) => {
                let runtime = crate::config::runtime()?;
                let store = crate::assemble::store::look_into_store(&self.store)?;
                runtime.block_on(command.run(store.as_ref()))
            }
        }
    }
}

/// Returns the sources of agent types for the current directory.
fn definitions() -> anyhow::Result<AgentSources> {
    Ok(AgentSources::at(
        &environment::working_directory()?,
        InlineAgents::default(),
    ))
}
