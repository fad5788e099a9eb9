//! `posse store backup`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{dump, shown};
use crate::assemble::maintenance::{self, BackupStop};
use crate::config::store::StoreLocation;
use crate::error::{Advised, INTERRUPTED};
use crate::output::{json_line, print, say, say_to_person, size, tame};

/// Interval at which a cancelled copy is interrupted.
const AGAIN: Duration = Duration::from_millis(20);

/// Copy the store into a new file, as it is at one moment, while others use it.
///
/// The copy of a file is itself a store: open it with `--store sqlite:FILE`. A server is copied
/// with PostgreSQL's own pg_dump; `pg_restore` restores it.
#[derive(clap::Args)]
pub(super) struct BackUpStore {
    /// File to create; it must not exist
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl BackUpStore {
    pub(super) fn run(self, place: &StoreLocation) -> anyhow::Result<ExitCode> {
        if let Some(file) = self
            .file
            .to_str()
            .and_then(|file| file.strip_prefix("sqlite:"))
        {
            anyhow::bail!(Advised {
                what: format!("{} is not a file", self.file.display()),
                advice: format!("give the path of the copy alone: posse store backup {file}"),
            });
        }
        if std::fs::symlink_metadata(&self.file).is_ok() {
            anyhow::bail!(Advised {
                what: format!("{} already exists", self.file.display()),
                advice: "name a new file; backups never overwrite".into(),
            });
        }
        let parent = self
            .file
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            anyhow::bail!(Advised {
                what: format!("there is no directory {}", parent.display()),
                advice: "create it first, or name a file elsewhere".into(),
            });
        }
        let runtime = crate::config::runtime()?;
        let copied = match place {
            StoreLocation::File(path) => {
                if let Ok(about) = std::fs::metadata(path) {
                    say_to_person(&format!(
                        "copying {} of {}",
                        size(about.len()),
                        shown(place)
                    ));
                }
                runtime.block_on(copied(path, &self.file))?
            }
            StoreLocation::Server(server) => {
                say_to_person(&format!("copying {}", shown(place)));
                runtime.block_on(dump::dumped(server, &self.file))?
            }
        };
        let Some(bytes) = copied else {
            say("interrupted; nothing was copied");
            return Ok(ExitCode::from(INTERRUPTED));
        };
        let line = match self.json {
            true => json_line(&json!({"file": self.file.to_string_lossy(), "bytes": bytes})),
            false => format!(
                "copied to {}: {}\n",
                tame(&self.file.to_string_lossy()),
                size(bytes)
            ),
        };
        print(line.as_bytes())?;
        if let StoreLocation::Server(_) = place {
            let file = tame(&self.file.to_string_lossy());
            say_to_person(&format!(
                "restore it into an empty database with: pg_restore --no-owner -d NAME {file}"
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Copies a file and returns the size of the copy; `None` if a signal stopped it, and then
/// nothing is left of it.
#[expect(
    clippy::disallowed_methods,
    reason = "what is waited for is SQLite, which knows no other clock"
)]
async fn copied(path: &Path, to: &Path) -> anyhow::Result<Option<u64>> {
    let (mut interrupt, mut end) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let (stop, from, to) = (BackupStop::default(), path.to_owned(), to.to_owned());
    let stopped = stop.clone();
    let mut copying =
        tokio::task::spawn_blocking(move || maintenance::back_up(&from, &to, &stopped));
    tokio::select! {
        done = &mut copying => return Ok(Some(done??)),
        _ = interrupt.recv() => {}
        _ = end.recv() => {}
    }
    loop {
        // Repeated, because a statement that is just starting misses an interrupt.
        stop.ask();
        tokio::select! {
            // The copy may have been finished before the signal.
            done = &mut copying => return Ok(done?.ok()),
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}
