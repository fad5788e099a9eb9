//! `posse sessions`.

mod export;
mod list;
mod show;
mod tree;

use std::process::ExitCode;

use crate::config::store::StoreArgs;

/// Show stored sessions.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct SessionsCommand {
    #[command(subcommand)]
    command: SessionsSubcommand,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum SessionsSubcommand {
    List(list::ListSessions),
    Show(show::ShowSession),
    Tree(tree::SessionTree),
    Export(export::ExportSession),
}

impl SessionsCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = crate::config::runtime()?;
        match self.command {
            SessionsSubcommand::List(command) => runtime.block_on(command.run(&self.store)),
            SessionsSubcommand::Show(command) => runtime.block_on(command.run(&self.store)),
            SessionsSubcommand::Tree(command) => runtime.block_on(command.run(&self.store)),
            SessionsSubcommand::Export(command) => runtime.block_on(command.run(&self.store)),
        }
    }
}
