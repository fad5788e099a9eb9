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
        super::runtime()?.block_on(async {
            let store = || crate::session::look_into_store(&self.store);
            match self.command {
                Command::List(command) => command.run(store()?.as_ref()).await,
                Command::Show(command) => command.run(store()?.as_ref()).await,
                Command::Export(command) => command.run(store()?.as_ref()).await,
                Command::Import(command) => command.run(&self.store).await,
            }
        })
    }
}

/// One, or several: `1 task`, `2 tasks`.
pub(crate) fn count(number: usize, one: &str) -> String {
    let many = if number == 1 { "" } else { "s" };
    format!("{number} {one}{many}")
}
