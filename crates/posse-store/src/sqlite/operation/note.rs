//! Writes the notes of a team or a session.

use posse_port::store::{Done, Refusal};
use posse_protocol::Name;
use rusqlite::{OptionalExtension, params};

use super::{OperationResult, WriteTransaction, column, fits};

/// Writes a note. Returns its new version.
pub(super) fn write_note(
    tx: &mut WriteTransaction<'_>,
    team: Option<&Name>,
    name: &Name,
    text: &str,
    expect: Option<u64>,
) -> OperationResult {
    if let Some(team) = team {
        tx.must_exist(team)?;
    }
    let team = team.map_or("", Name::as_str);
    let (realm, name) = (tx.realm_key(), name.as_str());
    let sql = "SELECT version FROM note WHERE realm = ?1 AND team = ?2 AND name = ?3";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let found = statement
        .query_row(params![realm, team, name], |row| row.get(0))
        .optional()?;
    let version = found.map_or(0, column::from_bits);
    if expect.is_some_and(|expect| expect != version) {
        return Err(Refusal::Changed { version }.into());
    }
    fits(text.len())?;
    let version = version + 1;
    let sql = "INSERT OR REPLACE INTO note (realm, team, name, version, author, written_ms, text)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let author = tx.me(team)?.name;
    let mut statement = tx.connection.prepare_cached(sql)?;
    statement.execute(params![
        realm,
        team,
        name,
        column::bits(version),
        author,
        tx.at_ms,
        text
    ])?;
    Ok(Done::Noted { version })
}
