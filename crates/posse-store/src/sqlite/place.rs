//! Where the data are: in a file, or in memory that the hosts of one process share.

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posse_port::store::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::Access;
use rustix::io::Errno;
use uuid::Uuid;

use super::error::SqliteCause;
use super::host::{Hosts, MemoryHosts, NO_LINK};
use super::timing::Timing;
use super::turnstile::Turnstile;

/// Time a transaction waits for others that do not pass the turnstile: a checkpoint, a recovery.
const PATIENCE: Duration = Duration::from_secs(10);

/// Without SQLite's own mutexes: a connection is used by one thread at a time.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Where the data are, and the time limits that apply there.
#[derive(Clone)]
pub(super) struct DatabasePlace {
    data: Data,
    pub(super) timing: Timing,
}

#[derive(Clone)]
enum Data {
    File(Arc<Path>),
    Memory(Arc<MemoryData>),
}

/// Data that live as long as this value.
struct MemoryData {
    uri: String,
    hosts: Arc<MemoryHosts>,
    /// SQLite discards the data with their last connection.
    _anchor: Mutex<Connection>,
}

impl DatabasePlace {
    /// Returns the file `path`, created if it is missing.
    pub(super) fn file(path: &Path, timing: Timing) -> Result<Self, StoreError> {
        let place = Self {
            data: Data::File(path.into()),
            timing,
        };
        make(path, timing).map_err(|error| place.failed(error))?;
        Ok(Self {
            data: Data::File(real(path).into()),
            timing,
        })
    }

    /// Returns the file `path`, whether it exists or not.
    pub(super) fn existing(path: &Path) -> Self {
        Self {
            data: Data::File(real(path).into()),
            timing: Timing::default(),
        }
    }

    /// Returns new memory.
    pub(super) fn memory() -> Result<Self, StoreError> {
        let uri = format!("file:/posse-{}?vfs=memdb", Uuid::now_v7());
        let anchor = connect_memory(&uri).map_err(|error| StoreError::Engine {
            place: "memory".into(),
            source: Box::new(SqliteCause::from(error)),
        })?;
        let hosts = Arc::default();
        let memory = MemoryData {
            uri,
            hosts,
            _anchor: Mutex::new(anchor),
        };
        Ok(Self {
            data: Data::Memory(Arc::new(memory)),
            timing: Timing::default(),
        })
    }

    /// Returns a new connection.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        match &self.data {
            Data::File(path) => connect(path),
            Data::Memory(memory) => connect_memory(&memory.uri),
        }
    }

    /// Returns the turnstile of the writing processes. Memory has only one process, for which
    /// SQLite's own lock is enough.
    pub(super) fn turnstile(&self) -> io::Result<Option<Turnstile>> {
        match &self.data {
            Data::File(path) => Turnstile::open(path).map(Some),
            Data::Memory(_) => Ok(None),
        }
    }

    /// Ensures that nobody else can read the data.
    pub(super) fn keep_private(&self) {
        if let Data::File(path) = &self.data {
            keep_private(path);
        }
    }

    /// Returns the hosts of this store.
    pub(super) fn hosts(&self) -> Hosts {
        match &self.data {
            Data::File(path) => Hosts::Files {
                directory: path.with_file_name("hosts"),
                lease: self.timing.lease,
            },
            Data::Memory(memory) => Hosts::Memory(Arc::clone(&memory.hosts)),
        }
    }

    /// Returns the port's error for a failure here.
    pub(super) fn failed(&self, cause: impl Into<SqliteCause>) -> StoreError {
        cause.into().at(self)
    }

    /// Returns true if this user may not read the file.
    pub(super) fn is_denied(&self) -> bool {
        let Data::File(path) = &self.data else {
            return false;
        };
        rustix::fs::access(&**path, Access::READ_OK) == Err(Errno::ACCESS)
    }

    /// Returns true if the file system has no space left, or cannot create files.
    pub(super) fn has_no_space(&self) -> bool {
        let Data::File(path) = &self.data else {
            return false;
        };
        rustix::fs::statvfs(directory(path)).is_ok_and(|space| {
            space.f_bavail.saturating_mul(space.f_frsize) < 1 << 16
                || (space.f_files > 0 && space.f_favail == 0)
        })
    }
}

impl fmt::Display for DatabasePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.data {
            Data::File(path) => path.display().fmt(f),
            Data::Memory(_) => f.write_str("memory"),
        }
    }
}

/// Resolves links to the file: SQLite keeps its companion files beside the real one, and so does
/// the store.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => ".".into(),
    }
}

/// Creates the file with access for its owner only; SQLite gives its companions the same
/// permissions.
fn make(path: &Path, timing: Timing) -> io::Result<()> {
    // Again under the lock: another process may have created it while this one waited.
    if path.try_exists()? {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory(path))?;
    let turnstile = Turnstile::open(path)?;
    let _pass = turnstile.enter(timing.patience)?;
    if path.try_exists()? {
        return Ok(());
    }
    // Created under another name: closing a handle on the database itself would drop the POSIX
    // locks that another connection of this process may already have on it.
    let new = path.with_added_extension("new");
    let mut make = OpenOptions::new();
    make.write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(NO_LINK)
        .open(&new)?;
    fs::rename(&new, path)
}

/// Restricts an existing file and SQLite's files beside it to their owner, because mail and
/// transcripts are private. Files of another owner are left as they are.
fn keep_private(path: &Path) {
    let own = rustix::process::geteuid().as_raw();
    let beside = ["-wal", "-shm"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    });
    for path in [path.to_owned()].into_iter().chain(beside) {
        let open = fs::metadata(&path).is_ok_and(|it| it.uid() == own && it.mode() & 0o077 != 0);
        if open {
            // Where permissions cannot be changed it is as private as it can be.
            let _ = fs::set_permissions(&path, Permissions::from_mode(0o600));
        }
    }
}

/// Returns a connection to a file that exists.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    configured(Connection::open_with_flags(path, FLAGS)?)
}

/// Returns a connection to shared memory.
fn connect_memory(uri: &str) -> rusqlite::Result<Connection> {
    let flags = FLAGS | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
    configured(Connection::open_with_flags(uri, flags)?)
}

fn configured(connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(256);
    // Plans must not depend on bound values: SQLite would prepare such a query again each time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // With less, a power loss could take steps that were acknowledged.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A long query keeps the log from being reset, so that it grows; afterwards it is truncated
    // to this.
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    // On macOS a plain fsync stops at the drive's cache.
    if cfg!(target_vendor = "apple") {
        connection.pragma_update(None, "fullfsync", true)?;
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::super::Sqlite;
    use super::*;

    #[test]
    fn a_file_that_others_could_read_is_made_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("posse.db");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        drop(Sqlite::open(&path).unwrap());
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let _store = Sqlite::open(&path).unwrap();
        assert_eq!(mode(), 0o600);
        let wal = path.with_file_name("posse.db-wal");
        assert!(fs::metadata(wal).is_ok_and(|it| it.mode() & 0o077 == 0));
    }
}
