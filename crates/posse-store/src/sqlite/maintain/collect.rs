//! Removal of realms that have not been used for a long time.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use posse_port::store::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::super::column;
use super::super::error::SqliteFailure;
use super::super::place::DatabasePlace;
use super::super::timing::Timing;
use super::super::turnstile::Turnstile;
use super::{TABLES, open};
use crate::maintain::{Collected, Unused};

/// Number of rows removed per transaction.
const BATCH: usize = 200;

/// Returns what [`collect`] would remove, most recently used first.
pub fn unused(path: &Path, before_ms: i64) -> Result<Vec<Unused>, StoreError> {
    let (place, connection) = open(path)?;
    let looked = || {
        let mut found = Vec::new();
        for realm in realms(&connection)? {
            if may_go(&place, &connection, realm, before_ms)? {
                found.push(described(&connection, realm)?);
            }
        }
        found.sort_by_key(|it| std::cmp::Reverse(it.used_ms));
        Ok(found)
    };
    looked().map_err(|failure: SqliteFailure| failure.at(&place))
}

/// Removes whole realms in which nothing has happened since `before_ms` and no agent is held by a
/// live host. Writers wait for one small batch at most. `told` is called with what has been
/// removed so far.
pub fn collect(
    path: &Path,
    before_ms: i64,
    told: &mut dyn FnMut(Collected),
) -> Result<Collected, StoreError> {
    collect_those(path, before_ms, &|_| true, told)
}

/// Like [`collect`], but only those that are `meant`.
pub fn collect_those(
    path: &Path,
    before_ms: i64,
    meant: &dyn Fn(&Unused) -> bool,
    told: &mut dyn FnMut(Collected),
) -> Result<Collected, StoreError> {
    let (place, connection) = open(path)?;
    let mut sum = Collected::default();
    let mut removed = || {
        let turnstile = place.turnstile()?;
        let free_before = free_bytes(&connection)?;
        for realm in realms(&connection)? {
            let pass = turnstile.as_ref();
            if let Some(gone) = remove(&place, pass, &connection, (realm, before_ms), meant)? {
                sum.sessions += gone.sessions;
                sum.agents += gone.agents;
                sum.teams += gone.teams.len() as u64;
                // Saturating: other processes may have used some of the free space meanwhile.
                sum.bytes = free_bytes(&connection)?.saturating_sub(free_before);
                told(sum);
            }
        }
        Ok(sum)
    };
    removed().map_err(|failure: SqliteFailure| failure.at(&place))
}

/// Removes a realm if it is meant and may be removed, and returns what it was.
fn remove(
    place: &DatabasePlace,
    turnstile: Option<&Turnstile>,
    connection: &Connection,
    (realm, before_ms): (Uuid, i64),
    meant: &dyn Fn(&Unused) -> bool,
) -> Result<Option<Unused>, SqliteFailure> {
    loop {
        let version = data_version(connection)?;
        if !may_go(place, connection, realm, before_ms)? {
            return Ok(None);
        }
        let gone = described(connection, realm)?;
        if !meant(&gone) {
            return Ok(None);
        }
        // The look above blocked nobody. Inside the transaction it is repeated only if somebody
        // has written since.
        let headless = in_turn(turnstile, connection, || {
            if data_version(connection)? != version && !may_go(place, connection, realm, before_ms)?
            {
                return Ok(false);
            }
            behead(connection, realm)?;
            Ok(true)
        })?;
        if headless {
            empty(turnstile, connection, realm)?;
            return Ok(Some(gone));
        }
    }
}

/// Returns a number that changes when another connection writes.
fn data_version(connection: &Connection) -> Result<i64, SqliteFailure> {
    Ok(connection.query_row("PRAGMA data_version", [], |row| row.get(0))?)
}

/// Returns how much of the file is free for reuse.
fn free_bytes(connection: &Connection) -> Result<u64, SqliteFailure> {
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map(column::from_bits)
    };
    Ok(number("PRAGMA freelist_count")?.saturating_mul(number("PRAGMA page_size")?))
}

/// Returns every realm that has a row. Each query skips to the next key instead of reading all
/// rows.
fn realms(connection: &Connection) -> Result<BTreeSet<Uuid>, SqliteFailure> {
    let mut realms = BTreeSet::new();
    for table in TABLES.iter().chain(&["preamble"]) {
        let sql = format!("SELECT realm FROM {table} WHERE realm > ?1 ORDER BY realm LIMIT 1");
        let mut statement = connection.prepare(&sql)?;
        let mut last = Vec::new();
        while let Some(next) = statement
            .query_row([&last], |row| column::id(row, 0))
            .optional()?
        {
            last = next.as_bytes().to_vec();
            realms.insert(next);
        }
    }
    Ok(realms)
}

/// Returns when something last happened in a realm; `None` if nothing in it has a time.
fn used_ms(connection: &Connection, realm: Uuid) -> Result<Option<i64>, SqliteFailure> {
    let sql = "SELECT max(at) FROM (
            SELECT max(used_ms) AS at FROM agent WHERE realm = ?1
            UNION ALL SELECT max(max(created_ms), max(here_ms)) FROM team WHERE realm = ?1
            UNION ALL SELECT max(joined_ms) FROM member WHERE realm = ?1
            UNION ALL SELECT max(updated_ms) FROM task WHERE realm = ?1
            UNION ALL SELECT max(written_ms) FROM note WHERE realm = ?1
            UNION ALL SELECT max(sent_ms) FROM mail WHERE realm = ?1)";
    Ok(connection
        .prepare_cached(sql)?
        .query_row([realm.as_bytes()], |row| row.get(0))?)
}

/// Returns true if nothing has happened since `before_ms` and no live host holds an agent of it.
fn may_go(
    place: &DatabasePlace,
    connection: &Connection,
    realm: Uuid,
    before_ms: i64,
) -> Result<bool, SqliteFailure> {
    if used_ms(connection, realm)?.is_some_and(|used| used >= before_ms) {
        return Ok(false);
    }
    let sql = "SELECT DISTINCT host FROM agent WHERE realm = ?1 AND host IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let hosts = statement.query_map([realm.as_bytes()], |row| column::id(row, 0))?;
    for host in hosts {
        if place.hosts().alive(host?)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn described(connection: &Connection, realm: Uuid) -> Result<Unused, SqliteFailure> {
    let number = |sql: &str| -> Result<u64, SqliteFailure> {
        let mut statement = connection.prepare_cached(sql)?;
        Ok(column::from_bits(
            statement.query_row([realm.as_bytes()], |row| row.get(0))?,
        ))
    };
    let sql = "SELECT id, cwd FROM agent WHERE realm = ?1 AND parent IS NULL ORDER BY created_ms, id LIMIT 1";
    let first = connection
        .prepare_cached(sql)?
        .query_row([realm.as_bytes()], |row| {
            Ok((column::id(row, 0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .optional()?;
    let sql = "SELECT name, lead FROM team WHERE realm = ?1 ORDER BY name";
    let mut teams = connection.prepare_cached(sql)?;
    let teams = teams.query_map([realm.as_bytes()], |row| {
        Ok((row.get(0)?, column::id(row, 1)?))
    })?;
    let (teams, leads): (Vec<String>, Vec<Uuid>) =
        teams.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    Ok(Unused {
        id: first
            .as_ref()
            .map(|(id, _)| *id)
            .or(leads.first().copied())
            .unwrap_or(realm),
        sessions: number("SELECT count(*) FROM agent WHERE realm = ?1 AND parent IS NULL")?,
        agents: number("SELECT count(*) FROM agent WHERE realm = ?1")?,
        teams,
        used_ms: used_ms(connection, realm)?.unwrap_or_default(),
        bytes: number("SELECT coalesce(sum(length(bytes)), 0) FROM entry WHERE realm = ?1")?,
        cwd: first.map(|(_, cwd)| OsString::from_vec(cwd).into()),
    })
}

/// Runs `act` in one transaction, after passing the turnstile.
fn in_turn<T>(
    turnstile: Option<&Turnstile>,
    connection: &Connection,
    act: impl FnOnce() -> Result<T, SqliteFailure>,
) -> Result<T, SqliteFailure> {
    let _pass = turnstile
        .map(|turnstile| turnstile.enter(Timing::default().patience))
        .transpose()?;
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    let done = act()?;
    transaction.commit()?;
    Ok(done)
}

/// Removes the rows by which a realm is found: nobody can see, take or join anything of it any
/// more. If the rest is not removed now, it is removed next time.
fn behead(connection: &Connection, realm: Uuid) -> Result<(), SqliteFailure> {
    for table in ["agent", "team"] {
        let sql = format!("DELETE FROM {table} WHERE realm = ?1");
        connection
            .prepare_cached(&sql)?
            .execute([realm.as_bytes()])?;
    }
    Ok(())
}

/// Removes all other rows of a realm in batches, unless somebody creates it again meanwhile.
fn empty(
    turnstile: Option<&Turnstile>,
    connection: &Connection,
    realm: Uuid,
) -> Result<(), SqliteFailure> {
    const KEYS: [(&str, &str); 20] = [
        ("member", "team, name"),
        ("inbox", "agent"),
        ("list", "team"),
        ("used_name", "team, name"),
        ("request", "id"),
        ("question", "id"),
        ("run", "agent, id"),
        ("note", "team, name"),
        ("task", "team, id"),
        ("dependency", "team, task, needs"),
        ("mail", "recipient, number"),
        ("segment", "agent, ordinal"),
        ("call", "agent, seq, ordinal"),
        ("charge", "agent, model, nth"),
        ("total", "agent, model, purpose"),
        ("seen", "agent, path"),
        ("entry", "agent, seq"),
        ("preamble", "hash"),
        ("feed", "number"),
        ("feed_head", "realm"),
    ];
    for (table, key) in KEYS {
        let sql = format!(
            "DELETE FROM {table} WHERE realm = ?1 AND ({key}) IN
                 (SELECT {key} FROM {table} WHERE realm = ?1 LIMIT ?2)"
        );
        loop {
            let removed = in_turn(turnstile, connection, || {
                let alive = "SELECT 1 WHERE EXISTS (SELECT 1 FROM agent WHERE realm = ?1)
                                 OR EXISTS (SELECT 1 FROM team WHERE realm = ?1)";
                if connection
                    .prepare_cached(alive)?
                    .exists([realm.as_bytes()])?
                {
                    return Ok(0);
                }
                Ok(connection
                    .prepare_cached(&sql)?
                    .execute(params![realm.as_bytes(), BATCH as i64])?)
            })?;
            if removed < BATCH {
                break;
            }
        }
    }
    Ok(())
}
