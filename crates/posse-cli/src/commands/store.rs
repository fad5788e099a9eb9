//! `posse store`.

mod backup;
mod check;
mod gc;
mod migrate;

use std::path::Path;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::session::{store_path, there};
use crate::store::StoreArgs;

/// Look after the file in which everything is kept.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct StoreCommand {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    Check(check::Check),
    Backup(backup::Backup),
    Gc(gc::Gc),
    Migrate(migrate::Migrate),
}

impl StoreCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let path = there(store_path(&self.store)?.path)?;
        match self.command {
            Command::Check(command) => command.run(&path),
            Command::Backup(command) => command.run(&path),
            Command::Gc(command) => unstopped(|| command.run(&path)),
            Command::Migrate(command) => unstopped(|| command.run(&path)),
        }
    }
}

/// Does something that Ctrl-Z does not stop: stopped in its turn to write, it would hold up all others.
/// Ctrl-C ends it.
fn unstopped(act: impl FnOnce() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let runtime = super::runtime()?;
    let _within = runtime.enter();
    let _unheard = signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?;
    act()
}

/// A size as people read it.
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

/// A path as people read it.
fn shown(path: &Path) -> String {
    crate::output::tame(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn a_size_has_its_unit() {
        let shown = [0, 999, 1000, 123_456, 999_999_999, 5_000_000_000_000_000].map(size);
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "123.5 kB", "1000.0 MB", "5000.0 TB"]);
    }
}
