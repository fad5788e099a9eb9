//! `posse team`.

mod archive;
mod directory;
mod export;
pub(crate) mod find;
mod import;
mod list;
mod show;

use std::process::ExitCode;

use crate::store::StoreArgs;

/// Look at teams, and take them elsewhere.
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
    List(list::List),
    Show(show::Show),
    Export(export::Export),
    Import(import::Import),
}

impl TeamCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = super::runtime()?;
        let store = crate::session::open_store(&self.store)?;
        match self.command {
            Command::List(command) => runtime.block_on(command.run(store.as_ref())),
            Command::Show(command) => runtime.block_on(command.run(store.as_ref())),
            Command::Export(command) => runtime.block_on(command.run(store.as_ref())),
            Command::Import(command) => runtime.block_on(command.run(store.as_ref())),
        }
    }
}

/// One, or several: `1 task`, `2 tasks`.
pub(crate) fn count(number: usize, one: &str) -> String {
    let many = if number == 1 { "" } else { "s" };
    format!("{number} {one}{many}")
}
