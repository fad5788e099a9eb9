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

/// Returns a size for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (mut amount, mut unit) = (bytes as f64 / 1000.0, 0);
    while amount >= 1000.0 && unit + 1 < UNITS.len() {
        (amount, unit) = (amount / 1000.0, unit + 1);
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// Returns a store's name for people.
fn shown(place: &StoreLocation) -> String {
    crate::output::tame(&place.shown())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn a_size_has_its_unit() {
        let shown = [0, 999, 1000, 123_456, 999_999_999, 5_000_000_000_000_000].map(size);
        assert_eq!(
            shown,
            [
                "0 B",
                "999 B",
                "1.0 kB",
                "123.5 kB",
                "1000.0 MB",
                "5000.0 TB"
            ]
        );
    }
}
