//! The tables, and how an older file becomes a newer one.
//!
//! A version once released is never edited: a change is another element of [`VERSIONS`].

use posse_runtime::port::store::StoreError;
use rusqlite::Connection;

use super::error::Cause;
use super::place::Place;

/// What brings a file from each version to the next; the first from an empty file.
const VERSIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// Makes the tables what this posse knows. Refuses those of a newer one.
pub(super) fn bring_up_to_date(place: &Place, connection: &Connection) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| place.failed(error);
    if version(connection).map_err(failed)? != VERSIONS.len() {
        let turnstile = place.turnstile().map_err(|error| place.failed(error))?;
        let pass = turnstile.as_ref().map(|turnstile| turnstile.enter(place.timing.patience));
        let _pass = pass.transpose().map_err(|error| place.failed(error))?;
        migrate(connection).map_err(|error| error.at(place))?;
    }
    match version(connection).map_err(failed)? {
        found if found > VERSIONS.len() => Err(StoreError::TooNew {
            place: place.to_string(),
            found: found as u32,
            known: VERSIONS.len() as u32,
        }),
        _ => Ok(()),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0)).map(|it| it as usize)
}

fn migrate(connection: &Connection) -> Result<(), Cause> {
    if version(connection)? == 0 {
        // Kept in the file. Memory has none and answers with another word.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    }
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    for (known, sql) in VERSIONS.iter().enumerate().skip(version(connection)?) {
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", known as u32 + 1)?;
    }
    transaction.commit()?;
    Ok(())
}
