//! A copy of a store, while others write to it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use posse_runtime::port::store::StoreError;
use rusqlite::Connection;

use super::super::error::Cause;
use super::super::place::Place;

/// Copies the store in `path` into the new file `to`, as it is at one moment, and gives the copy's size in
/// bytes. The copy is there whole or not at all, and only its owner can read it. Nobody waits for it.
pub fn back_up(path: &Path, to: &Path) -> Result<u64, StoreError> {
    let (from, place) = (Place::existing(path), Place::existing(to));
    let connection = from.connect().map_err(|error| from.failed(error))?;
    let new = to.with_added_extension(format!("{}.new", std::process::id()));
    let copied = copy(&connection, &new).and_then(|()| put(&new, to));
    if copied.is_err() {
        // It may not be there.
        let _ = fs::remove_file(&new);
    }
    copied.map_err(|cause| cause.at(&place))
}

/// A compact copy of one snapshot.
fn copy(connection: &Connection, new: &Path) -> Result<(), Cause> {
    // SQLite takes an empty file as it is, and so its rights stay.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    let name = new.to_str().ok_or_else(|| io::Error::other("the path is not UTF-8"))?;
    connection.execute("VACUUM INTO ?1", [name])?;
    // A copy has the usual journal; a store has the one that lets readers and writers be.
    let copy = Connection::open(new)?;
    copy.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    copy.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Gives the copy its name, unless something has it.
fn put(new: &Path, to: &Path) -> Result<u64, Cause> {
    let file = File::open(new)?;
    file.sync_all()?;
    let size = file.metadata()?.len();
    match fs::hard_link(new, to) {
        Ok(()) => fs::remove_file(new)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error.into()),
        // Some file systems have no links.
        Err(_) if !to.try_exists()? => fs::rename(new, to)?,
        Err(error) => return Err(error.into()),
    }
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()?;
    Ok(size)
}
