//! Hosts: the processes that hold agents, and whether they are alive.
//!
//! A host keeps a file of its own name locked while it lives; the kernel unlocks it when the
//! process ends, however it ends. The file has the process id, for people and for those who watch
//! the process, and the time of the last heartbeat. Beside it is the host's bell.

mod memory;

use std::fs::{self, DirBuilder, DirEntry, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

use crate::feed_watch::FeedWatch;
use crate::wake::Waker;

pub(super) use memory::MemoryHosts;

/// Files of a host are never opened through a symbolic link that somebody may have put there.
pub(super) const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// A file that has been under construction for longer was left by a host that died before it was
/// named.
const MAKING: Duration = Duration::from_secs(60);

/// All hosts of a store.
pub(super) enum Hosts {
    /// A directory with files for each host. One whose heartbeat is older than the lease is
    /// stalled.
    Files {
        directory: PathBuf,
        lease: Duration,
    },
    Memory(Arc<MemoryHosts>),
}

/// A host, alive until this is dropped.
pub(super) struct SqliteHost {
    pub(super) id: Uuid,
    hold: HostLock,
}

/// What keeps a host alive.
enum HostLock {
    File {
        directory: PathBuf,
        lock: File,
        stamp_at: u64,
    },
    Memory(Arc<MemoryHosts>),
}

/// The state of a host, as others see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum HostLiveness {
    Dead,
    /// Its process exists, but its last heartbeat is older than the lease.
    Stalled {
        pid: u32,
    },
    Alive {
        pid: u32,
    },
}

/// Writes heartbeats.
pub(super) struct Heart {
    file: File,
    stamp_at: u64,
}

impl Hosts {
    /// Creates a new host, whose notifications go to `waker`.
    pub(super) fn settle(&self, waker: &Arc<Waker>) -> io::Result<SqliteHost> {
        let id = Uuid::now_v7();
        let hold = match self {
            Self::Files { directory, .. } => {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(directory)?;
                let new = directory.join(format!("{id}.new"));
                let mut lock = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&new)?;
                lock.lock()?;
                let process = format!("{}\n", std::process::id());
                lock.write_all(format!("{process}{}", stamp()).as_bytes())?;
                OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(bell(directory, id))?;
                // It is named only now, so that a file with a host's name is always locked or its
                // host is dead.
                fs::rename(&new, directory.join(id.to_string()))?;
                self.sweep(directory, id);
                HostLock::File {
                    directory: directory.clone(),
                    lock,
                    stamp_at: process.len() as u64,
                }
            }
            Self::Memory(hosts) => {
                hosts.enter(id, waker);
                HostLock::Memory(Arc::clone(hosts))
            }
        };
        Ok(SqliteHost { id, hold })
    }

    /// Returns the state of a host.
    pub(super) fn look(&self, id: Uuid) -> io::Result<HostLiveness> {
        let (directory, lease) = match self {
            Self::Files { directory, lease } => (directory, *lease),
            Self::Memory(hosts) if hosts.contains(id) => {
                return Ok(HostLiveness::Alive {
                    pid: std::process::id(),
                });
            }
            Self::Memory(_) => return Ok(HostLiveness::Dead),
        };
        let path = directory.join(id.to_string());
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HostLiveness::Dead),
            opened => opened?,
        };
        if !is_locked(&file)? {
            return Ok(HostLiveness::Dead);
        }
        let (pid, shown) = shown(&path);
        // A stamp that is read while it is written may be wrong, but not wrong in the same way
        // twice.
        let is_old = |stamp: Option<u64>| {
            stamp.is_some_and(|at| now_ms().saturating_sub(at) > millis(lease))
        };
        let stalled = is_old(shown) && self::shown(&path).1 == shown;
        Ok(if stalled {
            HostLiveness::Stalled { pid }
        } else {
            HostLiveness::Alive { pid }
        })
    }

    /// Returns the process of a host that is not dead, for people.
    pub(super) fn alive(&self, id: Uuid) -> io::Result<Option<String>> {
        Ok(match self.look(id)? {
            HostLiveness::Dead => None,
            HostLiveness::Stalled { pid } | HostLiveness::Alive { pid } => {
                Some(format!("pid {pid}"))
            }
        })
    }

    /// Removes the files of a dead host. What cannot be removed now is removed by a later sweep.
    pub(super) fn forget(&self, id: Uuid) {
        if let Self::Files { directory, .. } = self {
            remove(directory, id);
        }
    }

    /// Returns the file that a host watches.
    pub(super) fn bell(&self, id: Uuid) -> Option<PathBuf> {
        match self {
            Self::Files { directory, .. } => Some(bell(directory, id)),
            Self::Memory(_) => None,
        }
    }

    /// Returns the file that all readers of feeds watch.
    pub(super) fn readers_bell(&self) -> Option<PathBuf> {
        match self {
            Self::Files { directory, .. } => Some(directory.join("feed.bell")),
            Self::Memory(_) => None,
        }
    }

    /// Returns the waiting readers of feeds: those of one store, or all of this memory.
    pub(super) fn feed(&self) -> Arc<FeedWatch> {
        match self {
            Self::Files { .. } => Arc::default(),
            Self::Memory(hosts) => Arc::clone(&hosts.feed),
        }
    }

    /// Removes files of dead hosts.
    fn sweep(&self, directory: &Path, own: Uuid) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let id = path
                .file_stem()
                .and_then(|name| name.to_str())
                .and_then(|name| name.parse().ok());
            let Some(id) = id.filter(|id| *id != own) else {
                continue;
            };
            let left = match path.extension() {
                None => matches!(self.look(id), Ok(HostLiveness::Dead)),
                // A bell exists before its host is named, so that a young one may belong to a
                // host in the making.
                Some(kind) if kind == "bell" => {
                    is_old(&entry) && matches!(self.look(id), Ok(HostLiveness::Dead))
                }
                // The file is locked right after its creation, so that a young one may not be
                // locked yet.
                Some(kind) if kind == "new" => {
                    is_old(&entry)
                        && File::open(&path).is_ok_and(|file| matches!(is_locked(&file), Ok(false)))
                }
                Some(_) => false,
            };
            if left {
                drop(fs::remove_file(&path));
            }
        }
    }
}

impl SqliteHost {
    /// Writes a heartbeat.
    pub(super) fn beat(&self) {
        if let HostLock::File { lock, stamp_at, .. } = &self.hold {
            beat(lock, *stamp_at);
        }
    }

    /// Returns a handle that writes heartbeats; `None` for a host in memory, which needs none.
    pub(super) fn heart(&self) -> io::Result<Option<Heart>> {
        match &self.hold {
            HostLock::File { lock, stamp_at, .. } => Ok(Some(Heart {
                file: lock.try_clone()?,
                stamp_at: *stamp_at,
            })),
            HostLock::Memory(_) => Ok(None),
        }
    }
}

impl Heart {
    /// Writes a heartbeat. A host that cannot is taken for stalled, which is correct.
    pub(super) fn beat(&self) {
        beat(&self.file, self.stamp_at);
    }
}

impl Drop for SqliteHost {
    fn drop(&mut self) {
        match &self.hold {
            // A file that cannot be removed is swept by the next host.
            HostLock::File { directory, .. } => remove(directory, self.id),
            HostLock::Memory(hosts) => hosts.leave(self.id),
        }
    }
}

fn beat(file: &File, stamp_at: u64) {
    // Not synced: a heartbeat only says that the process runs now.
    let _ = file.write_all_at(stamp().as_bytes(), stamp_at);
}

fn bell(directory: &Path, id: Uuid) -> PathBuf {
    directory.join(format!("{id}.bell"))
}

fn remove(directory: &Path, id: Uuid) {
    for path in [bell(directory, id), directory.join(id.to_string())] {
        let _ = fs::remove_file(path);
    }
}

fn is_locked(file: &File) -> io::Result<bool> {
    // Shared, so that two processes that test the lock do not take each other for the host.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the process id and the last heartbeat from a host's file.
fn shown(path: &Path) -> (u32, Option<u64>) {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines();
    let pid = lines
        .next()
        .and_then(|pid| pid.parse().ok())
        .unwrap_or_default();
    (pid, lines.next().and_then(|stamp| stamp.parse().ok()))
}

fn is_old(entry: &DirEntry) -> bool {
    let made = entry.metadata().and_then(|about| about.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > MAKING))
}

/// Returns a heartbeat. All have the same length, so that one overwrites another.
fn stamp() -> String {
    format!("{:020}\n", now_ms())
}

/// Returns milliseconds of a clock that all processes share and that stops while the machine
/// sleeps: after a night's sleep nobody is stalled.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
