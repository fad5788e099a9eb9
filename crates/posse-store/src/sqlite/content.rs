//! Content that many agents share, stored once per realm by its hash: preambles, what entries of
//! siblings begin with, and definitions of tools.

use posse_port::model::Encoded;
use rusqlite::{Connection, OptionalExtension, params};

use super::column;
use super::error::SqliteFailure;

pub(super) use crate::columns::{Hash, content_name as name};

/// Stores a content if it is new, and returns its hash.
pub(super) fn keep(
    connection: &Connection,
    realm: &[u8],
    encoded: &Encoded,
) -> Result<Hash, SqliteFailure> {
    let hash = name(&encoded.bytes, encoded.mark_at);
    // A look-up first: an ignored insert would have bound and copied all of the bytes.
    let sql = "SELECT 1 FROM preamble WHERE realm = ?1 AND hash = ?2";
    if !connection
        .prepare_cached(sql)?
        .exists(params![realm, hash])?
    {
        let sql = "INSERT INTO preamble (realm, hash, mark_at, bytes) VALUES (?1, ?2, ?3, ?4)";
        let mark_at = encoded.mark_at.map(|at| at as i64);
        connection.prepare_cached(sql)?.execute(params![
            realm,
            hash,
            mark_at,
            &encoded.bytes[..]
        ])?;
    }
    Ok(hash)
}

/// Returns the content with this hash, if it exists.
pub(super) fn find(
    connection: &Connection,
    realm: &[u8],
    hash: Hash,
) -> rusqlite::Result<Option<Encoded>> {
    let sql = "SELECT bytes, mark_at FROM preamble WHERE realm = ?1 AND hash = ?2";
    let encoded = |row: &rusqlite::Row<'_>| {
        Ok(Encoded {
            bytes: row.get::<_, Vec<u8>>(0)?.into(),
            mark_at: column::mark(row, 1)?,
        })
    };
    connection
        .prepare_cached(sql)?
        .query_row(params![realm, hash], encoded)
        .optional()
}
