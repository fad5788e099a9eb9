//! `posse store`.

mod backup;
mod check;
mod dump;
mod gc;
mod migrate;

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::config::store::{StoreArgs, StoreLocation};
use crate::config::store_choice::{meant_store, there};

/// Maintain the store.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct StoreCommand {
    #[command(subcommand)]
    command: StoreSubcommand,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum StoreSubcommand {
    Check(check::CheckStore),
    Backup(backup::BackUpStore),
    Gc(gc::CollectGarbage),
    Migrate(migrate::MigrateStore),
}

impl StoreCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let place = there(meant_store(&self.store)?.place)?;
        match self.command {
            StoreSubcommand::Check(command) => command.run(&place),
            StoreSubcommand::Backup(command) => command.run(&place),
            StoreSubcommand::Gc(command) => unstopped(&place, || command.run(&place)),
            StoreSubcommand::Migrate(command) => unstopped(&place, || command.run(&place)),
        }
    }
}

/// Runs `act` on a file such that Ctrl-Z does not stop it: stopped while it writes, it would
/// block all others. Ctrl-C ends it.
fn unstopped(
    place: &StoreLocation,
    act: impl FnOnce() -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    if let StoreLocation::Server(_) = place {
        return act();
    }
    let runtime = crate::config::runtime()?;
    let _within = runtime.enter();
    // A handler that nobody reads replaces the default action, which is to stop.
    let _unheard = signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?;
    act()
}

/// Returns a store's name for people.
fn shown(place: &StoreLocation) -> String {
    crate::output::tame(&place.shown())
}
