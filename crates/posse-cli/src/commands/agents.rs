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

/// Look at agents, and at the types of them that are defined here.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Agents {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Check(check::Check),
    New(new::New),
    Ps(ps::Ps),
}

impl Agents {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List(command) => command.run(&definitions()?),
            Command::Show(command) => command.run(&definitions()?),
            Command::Check(command) => command.run(&definitions()?),
            Command::New(command) => command.run(&definitions()?),
            Command::Ps(command) => {
                let runtime = crate::config::runtime()?;
                let store = crate::assemble::store::look_into_store(&self.store)?;
                runtime.block_on(command.run(store.as_ref()))
            }
        }
    }
}

/// Where types are defined for who works here.
fn definitions() -> anyhow::Result<AgentSources> {
    Ok(AgentSources::at(
        &environment::working_directory()?,
        InlineAgents::default(),
    ))
}
