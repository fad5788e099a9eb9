//! `posse mail`.

mod list;
mod recipient;
mod send;

use std::process::ExitCode;

use posse_protocol::Name;

use crate::store::StoreArgs;

/// Look at what agents have been sent, and send them something.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct MailCommand {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    realm: WhereArgs,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::List),
    Send(send::Send),
}

/// Among whom names are looked for.
#[derive(Clone, Debug, clap::Args)]
struct WhereArgs {
    /// The members of this team
    #[arg(long, global = true, value_name = "NAME", help_heading = "Among whom")]
    team: Option<Name>,
    /// Of this session; the beginning of its id will do [default: the one of this directory used last]
    #[arg(long, global = true, value_name = "ID", help_heading = "Among whom")]
    session: Option<String>,
}

impl MailCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = super::runtime()?;
        let store = crate::session::look_into_store(&self.store)?;
        match self.command {
            Command::List(command) => runtime.block_on(command.run(store.as_ref(), self.realm)),
            Command::Send(command) => runtime.block_on(command.run(store.as_ref(), self.realm)),
        }
    }
}
