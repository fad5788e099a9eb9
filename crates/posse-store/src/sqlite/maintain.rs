//! Maintenance of a store's file: integrity check, backup, and removal of unused sessions.
//!
//! These work beside processes that use the store, and block none of them for long.

mod backup;
mod check;
mod collect;

use std::path::Path;

use posse_port::store::StoreError;
use rusqlite::Connection;

use super::place::DatabasePlace;
use super::schema;

pub use backup::{BackupStop, back_up};
pub use check::check;
pub use collect::{collect, collect_those, unused};

/// Versions of a store's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The file's version; 0 if it is empty.
    pub found: u32,
    /// The newest version that this posse knows.
    pub known: u32,
}

/// Returns the version of the tables in the file `path`. Does not migrate it.
pub fn versions(path: &Path) -> Result<Versions, StoreError> {
    let place = DatabasePlace::existing(path);
    let connection = place.connect().map_err(|error| place.failed(error))?;
    schema::must_be_ours(&place, &connection)?;
    let found = schema::version(&connection).map_err(|error| place.failed(error))?;
    Ok(Versions {
        found: found as u32,
        known: schema::KNOWN as u32,
    })
}

/// Opens the existing file `path` and brings its tables up to date.
fn open(path: &Path) -> Result<(DatabasePlace, Connection), StoreError> {
    let place = DatabasePlace::existing(path);
    let connection = place.connect().map_err(|error| place.failed(error))?;
    schema::bring_up_to_date(&place, &connection)?;
    Ok((place, connection))
}

/// Tables with a realm, in the order in which a realm is removed: first the rows by which others
/// are found.
const TABLES: [&str; 21] = [
    "agent",
    "team",
    "member",
    "inbox",
    "list",
    "used_name",
    "request",
    "question",
    "run",
    "note",
    "task",
    "dependency",
    "mail",
    "segment",
    "call",
    "charge",
    "total",
    "seen",
    "entry",
    "feed",
    "feed_head",
];

#[cfg(test)]
mod tests;
