//! `posse mail`.

mod list;
mod send;

use std::process::ExitCode;

use crate::config::store::StoreArgs;
use crate::select::recipients::RecipientArgs;

/// Look at what agents have been sent, and send them something.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct MailCommand {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    realm: RecipientArgs,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::List),
    Send(send::Send),
}

impl MailCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = crate::config::runtime()?;
        let store = crate::assemble::store::look_into_store(&self.store)?;
        match self.command {
            Command::List(command) => runtime.block_on(command.run(store.as_ref(), self.realm)),
            Command::Send(command) => runtime.block_on(command.run(store.as_ref(), self.realm)),
        }
    }
}
