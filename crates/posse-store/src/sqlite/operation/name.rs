//! Names in a team: no name is given twice.

use std::collections::BTreeSet;

use posse_protocol::Name;
use rusqlite::{OptionalExtension, params};

use super::{SqliteFailure, WriteTransaction};

/// The most digits that a number behind a name has.
const DIGITS: u32 = 9;

/// Finds the name with the highest number behind a stem.
pub(in crate::sqlite) const HIGHEST: &str = "SELECT name FROM used_name INDEXED BY used_name_number
    WHERE realm = ?1 AND team = ?2 AND rtrim(name, '0123456789') = ?3
        AND length(name) > length(?3) AND length(name) <= length(?3) + ?4 AND substr(name, length(?3) + 1, 1) <> '0'
    ORDER BY length(name) DESC, name DESC LIMIT 1";

/// Returns the name that was asked for, or that name with the first free number after the highest
/// it has in the team.
pub(super) fn free_name(
    tx: &WriteTransaction<'_>,
    team: &Name,
    wished: &Name,
) -> Result<Name, SqliteFailure> {
    let mut name = wished.clone();
    let mut number = 0;
    while !is_free(tx, team, &name)? {
        number = match number {
            0 => highest(tx, team, wished)? + 1,
            number => number + 1,
        };
        name = wished.numbered(number);
    }
    Ok(name)
}

/// Returns true if no member has or had this name, and no agent of the realm is registered under
/// it.
fn is_free(tx: &WriteTransaction<'_>, team: &Name, name: &Name) -> Result<bool, SqliteFailure> {
    let sql = "SELECT 1 FROM used_name WHERE realm = ?1 AND team = ?2 AND name = ?3
               UNION ALL SELECT 1 FROM agent WHERE realm = ?1 AND name = ?3";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = params![tx.realm_key(), team.as_str(), name.as_str()];
    Ok(!name.is_reserved() && !statement.exists(key)?)
}

/// Returns the highest number that a name has in the team; 1 if it has none.
fn highest(tx: &WriteTransaction<'_>, team: &Name, wished: &Name) -> Result<u32, SqliteFailure> {
    // A long name is cut by as many characters as its number has digits, so each count has its own
    // stem.
    let stems: BTreeSet<String> = (0..DIGITS)
        .map(|zeros| wished.numbered(10_u32.pow(zeros)).to_string())
        .map(|name| {
            name.trim_end_matches(|end: char| end.is_ascii_digit())
                .to_owned()
        })
        .collect();
    let mut statement = tx.connection.prepare_cached(HIGHEST)?;
    let mut highest = 1;
    for stem in stems {
        let key = params![tx.realm_key(), team.as_str(), stem, DIGITS];
        let found: Option<String> = statement.query_row(key, |row| row.get(0)).optional()?;
        let number = found
            .as_deref()
            .and_then(|name| name.strip_prefix(&*stem)?.parse().ok());
        let of_it = |number: &u32| Some(wished.numbered(*number).as_str()) == found.as_deref();
        highest = highest.max(number.filter(of_it).unwrap_or(1));
    }
    Ok(highest)
}

/// Records a name, so that it is not given again.
pub(super) fn use_up(
    tx: &WriteTransaction<'_>,
    team: &Name,
    name: &Name,
) -> Result<(), SqliteFailure> {
    let sql = "INSERT OR IGNORE INTO used_name (realm, team, name) VALUES (?1, ?2, ?3)";
    let mut statement = tx.connection.prepare_cached(sql)?;
    statement.execute(params![tx.realm_key(), team.as_str(), name.as_str()])?;
    Ok(())
}
