//! `posse mail`.

mod list;
mod send;

use std::process::ExitCode;

use crate::config::store::StoreArgs;
use crate::select::recipients::RecipientArgs;

/// List mail of agents, and send them mail.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct MailCommand {
    #[command(subcommand)]
    command: MailSubcommand,
    #[command(flatten)]
    realm: RecipientArgs,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum MailSubcommand {
    List(list::ListMail),
    Send(send::SendMail),
}

impl MailCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = crate::config::runtime()?;
        let store = crate::assemble::store::look_into_store(&self.store)?;
        match self.command {
            MailSubcommand::List(command) => {
                runtime.block_on(command.run(store.as_ref(), self.realm))
            }
            MailSubcommand::Send(command) => {
                runtime.block_on(command.run(store.as_ref(), self.realm))
            }
        }
    }
}
