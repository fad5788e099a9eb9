//! `posse requests`.

mod answer;
mod list;
mod meant;
mod show;

use std::process::ExitCode;

use crate::config::store::StoreArgs;

/// List what agents ask people, and answer it.
///
/// Questions wait in the store: any terminal can answer them, once, whichever process runs the
/// agent.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct RequestsCommand {
    #[command(subcommand)]
    command: RequestsSubcommand,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum RequestsSubcommand {
    List(list::ListOpen),
    Show(show::ShowRequest),
    Answer(answer::AnswerRequest),
}

impl RequestsCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = crate::config::runtime()?;
        let store = crate::assemble::store::look_into_store(&self.store)?;
        let store = store.as_ref();
        match self.command {
            RequestsSubcommand::List(command) => runtime.block_on(command.run(store)),
            RequestsSubcommand::Show(command) => runtime.block_on(command.run(store)),
            RequestsSubcommand::Answer(command) => runtime.block_on(command.run(store)),
        }
    }
}
