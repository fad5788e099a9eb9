//! Looking after a store's file: is it whole, a copy of it, what is not needed any more.
//!
//! These work beside processes that use the store, and hold none of them up for long.

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
pub use collect::{collect, unused};

/// Versions of a store's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The file's; 0 if it is empty.
    pub found: u32,
    /// The newest that is known here.
    pub known: u32,
}

/// Returns which version of the tables the file `path` has. It is not brought up to date by this.
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

/// Returns the file `path` with up-to-date tables; it must be there.
fn open(path: &Path) -> Result<(DatabasePlace, Connection), StoreError> {
    let place = DatabasePlace::existing(path);
    let connection = place.connect().map_err(|error| place.failed(error))?;
    schema::bring_up_to_date(&place, &connection)?;
    Ok((place, connection))
}

/// Tables with a realm, from those whose rows make others visible to those that are only found by
/// them.
const TABLES: [&str; 18] = [
    "agent",
    "team",
    "member",
    "inbox",
    "list",
    "used_name",
    "request",
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
];

#[cfg(test)]
mod tests;
