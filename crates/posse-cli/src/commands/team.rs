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

/// Run teams, show them, talk to their members, and export and import them.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct TeamCommand {
    #[command(subcommand)]
    command: TeamSubcommand,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum TeamSubcommand {
    // Boxed, because it has the flags of every command that runs agents.
    Run(Box<run::RunTeam>),
    Check(check::CheckTeams),
    #[command(flatten)]
    Looking(StoredTeamSubcommand),
    Import(import::ImportTeam),
    Join(Box<join::JoinTeam>),
}

/// What needs a store with teams in it.
#[derive(clap::Subcommand)]
enum StoredTeamSubcommand {
    List(list::ListTeams),
    Show(show::ShowTeam),
    Attach(attach::AttachMember),
    Interrupt(signal::InterruptMember),
    Stop(signal::StopMember),
    Requests(requests::ListRequests),
    Approve(requests::ApproveRequest),
    Reject(requests::RejectRequest),
    Export(export::ExportTeam),
    Delete(delete::DeleteTeam),
}

impl TeamCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let looking = match self.command {
            TeamSubcommand::Run(command) => return command.run(self.store),
            TeamSubcommand::Check(command) => return command.run(),
            TeamSubcommand::Import(command) => {
                return crate::config::runtime()?.block_on(command.run(&self.store));
            }
            TeamSubcommand::Join(command) => return command.run(&self.store),
            TeamSubcommand::Looking(looking) => looking,
        };
        crate::config::runtime()?.block_on(async {
            let store = crate::assemble::store::look_into_store(&self.store)?;
            let store = store.as_ref();
            match looking {
                StoredTeamSubcommand::List(command) => command.run(store).await,
                StoredTeamSubcommand::Show(command) => command.run(store).await,
                StoredTeamSubcommand::Attach(command) => command.run(store).await,
                StoredTeamSubcommand::Interrupt(command) => command.run(store).await,
                StoredTeamSubcommand::Stop(command) => command.run(store).await,
                StoredTeamSubcommand::Requests(command) => command.run(store).await,
                StoredTeamSubcommand::Approve(command) => command.run(store).await,
                StoredTeamSubcommand::Reject(command) => command.run(store).await,
                StoredTeamSubcommand::Export(command) => command.run(store).await,
                StoredTeamSubcommand::Delete(command) => command.run(store).await,
            }
        })
    }

    /// Returns what members are hosted on, if that is what is asked for.
    #[cfg(test)]
    pub(crate) fn joins(&self) -> Option<&crate::assemble::agent_args::AgentArgs> {
        match &self.command {
            TeamSubcommand::Join(join) => Some(&join.terms),
            _ => None,
        }
    }
}
