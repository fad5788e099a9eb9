//! Hosts: the processes that have worktrees. A host keeps a file of its own name locked; the
//! kernel unlocks it when the process ends, in whatever way.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// Where the files of hosts lie, beneath the home of worktrees.
const DIRECTORY: &str = ".hosts";

/// This process, alive until it is dropped.
#[derive(Debug)]
pub(super) struct WorktreeHost {
    pub(super) id: Uuid,
    file: PathBuf,
    _lock: File,
}

impl WorktreeHost {
    /// Registers this process as a host beneath `home`.
    pub(super) fn settle(home: &Path) -> io::Result<Self> {
        let directory = home.join(DIRECTORY);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;
        let id = Uuid::now_v7();
        let new = directory.join(format!("{id}.new"));
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        lock.lock()?;
        // Renamed only after it is locked: a file with the name of a host that is not locked
        // means that the host is dead.
        let file = directory.join(id.to_string());
        fs::rename(&new, &file)?;
        Ok(Self {
            id,
            file,
            _lock: lock,
        })
    }
}

impl Drop for WorktreeHost {
    fn drop(&mut self) {
        // A host without a file counts as dead, too.
        let _ = fs::remove_file(&self.file);
    }
}

/// Returns true if a host is alive, or if that cannot be found out.
pub(super) fn lives(home: &Path, id: Uuid) -> bool {
    match File::open(home.join(DIRECTORY).join(id.to_string())) {
        // Shared and released at once, so that others who check at the same time do not take this
        // lock for that of the host.
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes what dead hosts left.
pub(super) fn forget(home: &Path) {
    for entry in fs::read_dir(home.join(DIRECTORY))
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        let Ok(file) = File::open(&path) else {
            continue;
        };
        // A file that is being made is not locked yet; it is skipped until it has its name.
        let named = path.extension().is_none();
        if named
            && !matches!(
                file.try_lock(),
                Err(TryLockError::WouldBlock | TryLockError::Error(_))
            )
        {
            let _ = fs::remove_file(&path);
        }
    }
}
