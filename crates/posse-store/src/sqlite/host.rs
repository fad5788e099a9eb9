//! Hosts: who holds agents, and whether they are alive.
//!
//! A host locks a file of its own name for its life; the kernel unlocks it when the process ends,
//! however it ends. Nobody trusts a process id: it is in the file for people.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

/// The hosts of a store in memory: all of this process.
#[derive(Default)]
pub(super) struct MemoryHosts(Mutex<BTreeSet<Uuid>>);

/// All hosts of a store.
pub(super) enum Hosts {
    /// A directory with a file for each.
    Files(PathBuf),
    Memory(Arc<MemoryHosts>),
}

/// A host that lives until this is dropped.
pub(super) struct Host {
    pub(super) id: Uuid,
    hold: Hold,
}

enum Hold {
    File { path: PathBuf, _lock: File },
    Memory(Arc<MemoryHosts>),
}

impl Hosts {
    /// Makes a new host.
    pub(super) fn settle(&self) -> io::Result<Host> {
        let id = Uuid::now_v7();
        let hold = match self {
            Self::Files(directory) => {
                DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
                let (path, new) = (directory.join(id.to_string()), directory.join(format!("{id}.new")));
                let mut lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
                lock.lock()?;
                writeln!(lock, "{}", std::process::id())?;
                // It gets its name only now: a file with a host's name is locked or its host is dead.
                fs::rename(&new, &path)?;
                self.sweep(directory, id);
                Hold::File { path, _lock: lock }
            }
            Self::Memory(hosts) => {
                hosts.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
                Hold::Memory(Arc::clone(hosts))
            }
        };
        Ok(Host { id, hold })
    }

    /// The process of a live host, for people; none if the host is dead.
    pub(super) fn alive(&self, id: Uuid) -> io::Result<Option<String>> {
        match self {
            Self::Files(directory) => {
                let path = directory.join(id.to_string());
                let file = match File::open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    opened => opened?,
                };
                // Shared, so that two who look do not take each other for the host.
                match file.try_lock_shared() {
                    Ok(()) => Ok(None),
                    Err(TryLockError::WouldBlock) => {
                        let pid = fs::read_to_string(&path).unwrap_or_default();
                        Ok(Some(format!("pid {}", pid.trim())))
                    }
                    Err(TryLockError::Error(error)) => Err(error),
                }
            }
            Self::Memory(hosts) => {
                let alive = hosts.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&id);
                Ok(alive.then(|| format!("pid {}", std::process::id())))
            }
        }
    }

    /// Removes what a dead host left. What cannot be removed now is removed another time.
    pub(super) fn bury(&self, id: Uuid) {
        if let Self::Files(directory) = self {
            let _ = fs::remove_file(directory.join(id.to_string()));
        }
    }

    /// Removes what dead hosts left.
    fn sweep(&self, directory: &Path, own: Uuid) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|name| Uuid::parse_str(name).ok());
            if id.is_some_and(|id| id != own && matches!(self.alive(id), Ok(None))) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        match &self.hold {
            // A file that stays is swept by the next host.
            Hold::File { path, .. } => drop(fs::remove_file(path)),
            Hold::Memory(hosts) => {
                hosts.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
            }
        }
    }
}
