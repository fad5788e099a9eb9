//! `posse sessions`.

mod export;
mod list;
mod show;

use std::process::ExitCode;

use crate::config::store::StoreArgs;

/// Look at the sessions that posse has kept.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Export(export::Export),
}

impl Sessions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = crate::config::runtime()?;
        match self.command {
            Command::List(command) => runtime.block_on(command.run(&self.store)),
            Command::Show(command) => runtime.block_on(command.run(&self.store)),
            Command::Export(command) => runtime.block_on(command.run(&self.store)),
        }
    }
}
