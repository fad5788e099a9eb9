//! `posse agents`.

mod ps;

use std::process::ExitCode;

pub(crate) use ps::state;

use crate::store::StoreArgs;

/// Look at agents.
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
    Ps(ps::Ps),
}

impl Agents {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = super::runtime()?;
        let store = crate::session::look_into_store(&self.store)?;
        match self.command {
            Command::Ps(command) => runtime.block_on(command.run(store.as_ref())),
        }
    }
}

/// The number of a process as stores tell it: `pid 4711`.
pub(crate) fn pid(holder: &str) -> Option<u32> {
    holder.strip_prefix("pid ")?.parse().ok()
}
