//! `posse team`.

mod archive;
mod attach;
mod check;
mod declared;
mod delete;
mod directory;
mod export;
mod import;
mod join;
mod list;
mod requests;
mod run;
mod show;
mod signal;

use std::process::ExitCode;

use crate::config::store::StoreArgs;

/// Have teams work, look at them, talk to their members, and take them elsewhere.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct TeamCommand {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    // It has the flags of all that has agents work.
    Run(Box<run::Run>),
    Check(check::Check),
    #[command(flatten)]
    Looking(Looking),
    Import(import::Import),
    Join(Box<join::Join>),
}

/// What needs a store with teams in it.
#[derive(clap::Subcommand)]
enum Looking {
    List(list::List),
    Show(show::Show),
    Attach(attach::Attach),
    Interrupt(signal::Interrupt),
    Stop(signal::Stop),
    Requests(requests::Requests),
    Approve(requests::Approve),
    Reject(requests::Reject),
    Export(export::Export),
    Delete(delete::Delete),
}

impl TeamCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let looking = match self.command {
            Command::Run(command) => return command.run(self.store),
            Command::Check(command) => return command.run(),
            Command::Import(command) => {
                return crate::config::runtime()?.block_on(command.run(&self.store));
            }
            Command::Join(command) => return command.run(&self.store),
            Command::Looking(looking) => looking,
        };
        crate::config::runtime()?.block_on(async {
            let store = crate::assemble::store::look_into_store(&self.store)?;
            let store = store.as_ref();
            match looking {
                Looking::List(command) => command.run(store).await,
                Looking::Show(command) => command.run(store).await,
                Looking::Attach(command) => command.run(store).await,
                Looking::Interrupt(command) => command.run(store).await,
                Looking::Stop(command) => command.run(store).await,
                Looking::Requests(command) => command.run(store).await,
                Looking::Approve(command) => command.run(store).await,
                Looking::Reject(command) => command.run(store).await,
                Looking::Export(command) => command.run(store).await,
                Looking::Delete(command) => command.run(store).await,
            }
        })
    }

    /// What members are hosted on, if that is what is asked for.
    #[cfg(test)]
    pub(crate) fn joins(&self) -> Option<&crate::assemble::terms::AgentArgs> {
        match &self.command {
            Command::Join(join) => Some(&join.terms),
            _ => None,
        }
    }
}
