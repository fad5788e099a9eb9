//! Resources that end with their test: a directory, and every process that works in it.
//!
//! All processes of a server work in its data directory, so they are found there, independent of
//! their parents and process ids.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::install::keeper;
use crate::scripted::SetupError;

/// A directory guarded by a process: when this is dropped, or its process has ended, the directory
/// is removed.
pub(super) struct Guard {
    pub(super) directory: PathBuf,
    keeper: Child,
}

impl Guard {
    pub(super) fn new() -> Result<Self, SetupError> {
        let directory = tempfile::Builder::new()
            .prefix("posse-postgres-")
            .tempdir()?;
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
        let keeper = keeper()?
            .arg("watch")
            .arg(directory.path())
            .stdin(Stdio::piped())
            .spawn()?;
        Ok(Self {
            directory: directory.keep(),
            keeper,
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}

/// The keeper's side: waits until its input ends, then removes the directory and ends the processes
/// in it.
pub fn watch(directory: &Path) -> Result<(), SetupError> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    // A process that died may have started another just before.
    for _ in 0..10 {
        kill_all(directory)?;
        if std::fs::remove_dir_all(directory).is_ok() || !directory.exists() {
            return Ok(());
        }
    }
    Err(format!("{} does not go", directory.display()).into())
}

/// Kills every process that works in a directory or below it, and waits until none is left.
pub(super) fn kill_all(directory: &Path) -> Result<(), SetupError> {
    let begun = Instant::now();
    loop {
        let found = processes(directory)?;
        if found.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_secs(20) {
            return Err(
                format!("processes {found:?} of {} do not end", directory.display()).into(),
            );
        }
        for pid in found {
            // Checked again with a handle on it, since the process id may have been reused.
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            if works_in(pid, directory) {
                // It may just have ended.
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
        }
        pause(Duration::from_millis(2));
    }
}

/// Returns the processes that work in a directory or below it.
pub(super) fn processes(directory: &Path) -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(Pid::from_raw);
        found.extend(pid.filter(|pid| works_in(*pid, directory)));
    }
    Ok(found)
}

/// A process that has ended, or is not ours to inspect, works nowhere.
fn works_in(pid: Pid, directory: &Path) -> bool {
    let place = format!("/proc/{}/cwd", pid.as_raw_nonzero());
    std::fs::read_link(place).is_ok_and(|place| place.starts_with(directory))
}

/// Interval for polling a process that cannot notify us.
#[expect(
    clippy::disallowed_methods,
    reason = "other processes have no clock of ours"
)]
pub(super) fn pause(time: Duration) {
    std::thread::sleep(time);
}
