//! Copies a store while others write to it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use posse_port::store::StoreError;
use rusqlite::{Connection, InterruptHandle};

use super::super::error::SqliteCause;
use super::super::place::DatabasePlace;
use super::super::schema;

/// Cancels a copy that is being made.
#[derive(Clone, Default)]
pub struct BackupStop(Arc<Mutex<BackupState>>);

#[derive(Default)]
struct BackupState {
    stop: bool,
    copying: Option<InterruptHandle>,
}

impl BackupStop {
    /// Cancels the copy. A statement that is just starting may miss it: call this until the copy
    /// ends.
    pub fn ask(&self) {
        let mut wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.stop = true;
        if let Some(copying) = &wanted.copying {
            copying.interrupt();
        }
    }

    /// Registers the connection that `ask` interrupts. Fails if the copy was already cancelled.
    fn go_on(&self, with: Option<&Connection>) -> io::Result<()> {
        let mut wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.copying = with.map(Connection::get_interrupt_handle);
        match wanted.stop {
            true => Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "it was cancelled",
            )),
            false => Ok(()),
        }
    }
}

/// Copies the store in `path` into the new file `to`, as of one moment, and returns the copy's
/// size in bytes. The copy exists whole or not at all, and only its owner can read it. It blocks
/// nobody.
pub fn back_up(path: &Path, to: &Path, stop: &BackupStop) -> Result<u64, StoreError> {
    let (from, place) = (DatabasePlace::existing(path), DatabasePlace::existing(to));
    let connection = from.connect().map_err(|error| from.failed(error))?;
    schema::must_be_ours(&from, &connection)?;
    // Under another name first, so that an interrupted copy is never taken for a whole one.
    let new = to.with_added_extension(format!("{}.new", std::process::id()));
    let copied = copy(&connection, &new, stop).and_then(|()| put(&new, to, stop));
    if copied.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&new);
    }
    copied.map_err(|cause| cause.at(&place))
}

/// Writes a compact copy of one snapshot.
fn copy(connection: &Connection, new: &Path, stop: &BackupStop) -> Result<(), SqliteCause> {
    stop.go_on(Some(connection))?;
    // SQLite uses an empty file as it is, so that the permissions set here stay.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(new)?;
    let name = new
        .to_str()
        .ok_or_else(|| io::Error::other("the path is not UTF-8"))?;
    connection.execute("VACUUM INTO ?1", [name])?;
    // VACUUM INTO does not keep the journal mode, and a store needs the write-ahead log.
    let copy = Connection::open(new)?;
    copy.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    copy.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Gives the copy its name, unless that exists.
fn put(new: &Path, to: &Path, stop: &BackupStop) -> Result<u64, SqliteCause> {
    let file = File::open(new)?;
    file.sync_all()?;
    let size = file.metadata()?.len();
    stop.go_on(None)?;
    // A link fails if the name exists, where a rename would replace it.
    match fs::hard_link(new, to) {
        Ok(()) => fs::remove_file(new)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error.into()),
        // Some file systems have no hard links.
        Err(_) if !to.try_exists()? => fs::rename(new, to)?,
        Err(error) => return Err(error.into()),
    }
    let parent = to
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // The name itself must survive a power loss, too.
    File::open(parent)?.sync_all()?;
    Ok(size)
}
