//! Removing realms that nobody has used for long.

use std::collections::BTreeSet;
use std::path::Path;

use posse_runtime::port::store::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::super::column;
use super::super::error::Failure;
use super::super::place::Place;
use super::super::timing::Timing;
use super::super::turnstile::Turnstile;
use super::{TABLES, open};

/// Rows that are removed in one transaction.
const BATCH: usize = 200;

/// What was removed, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Root agents.
    pub sessions: u64,
    /// All agents.
    pub agents: u64,
    /// Teams.
    pub teams: u64,
    /// The texts that were kept for them, in bytes. The file does not shrink: what is free is used again.
    pub bytes: u64,
}

/// What [`collect`] would remove.
pub fn unused(path: &Path, before_ms: i64) -> Result<Collected, StoreError> {
    let (place, connection) = open(path)?;
    let counted = || {
        let mut sum = Collected::default();
        for realm in realms(&connection)? {
            if may_go(&place, &connection, realm, before_ms)? {
                sum.add(count(&connection, realm)?);
            }
        }
        Ok(sum)
    };
    counted().map_err(|failure: Failure| failure.at(&place))
}

/// Removes whole realms in which nothing has happened since `before_ms` and no agent is held by a live
/// host. Writers wait for one small batch at most. `told` is called with what is removed so far.
pub fn collect(
    path: &Path,
    before_ms: i64,
    told: &mut dyn FnMut(Collected),
) -> Result<Collected, StoreError> {
    let (place, connection) = open(path)?;
    let mut sum = Collected::default();
    let mut removed = || {
        let turnstile = place.turnstile()?;
        for realm in realms(&connection)? {
            // Looked at without holding anybody up first; decided when nobody can change it.
            if may_go(&place, &connection, realm, before_ms)? {
                let gone = in_turn(turnstile.as_ref(), &connection, || {
                    let go = may_go(&place, &connection, realm, before_ms)?;
                    let gone = if go { Some(count(&connection, realm)?) } else { None };
                    if go {
                        behead(&connection, realm)?;
                    }
                    Ok(gone)
                })?;
                if let Some(gone) = gone {
                    empty(turnstile.as_ref(), &connection, realm)?;
                    sum.add(gone);
                    told(sum);
                }
            }
        }
        Ok(sum)
    };
    removed().map_err(|failure: Failure| failure.at(&place))
}

impl Collected {
    fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.agents += other.agents;
        self.teams += other.teams;
        self.bytes += other.bytes;
    }
}

/// Every realm of which there is a row, found by leaps through the keys.
fn realms(connection: &Connection) -> Result<BTreeSet<Uuid>, Failure> {
    let mut realms = BTreeSet::new();
    for table in TABLES.iter().chain(&["preamble"]) {
        let sql = format!("SELECT realm FROM {table} WHERE realm > ?1 ORDER BY realm LIMIT 1");
        let mut statement = connection.prepare(&sql)?;
        let mut last = Vec::new();
        while let Some(next) = statement.query_row([&last], |row| column::id(row, 0)).optional()? {
            last = next.as_bytes().to_vec();
            realms.insert(next);
        }
    }
    Ok(realms)
}

/// Whether nothing has happened since, and no live host holds an agent of it.
fn may_go(place: &Place, connection: &Connection, realm: Uuid, before_ms: i64) -> Result<bool, Failure> {
    let sql = "SELECT max(at) FROM (
            SELECT max(used_ms) AS at FROM agent WHERE realm = ?1
            UNION ALL SELECT max(created_ms) FROM team WHERE realm = ?1
            UNION ALL SELECT max(joined_ms) FROM member WHERE realm = ?1
            UNION ALL SELECT max(updated_ms) FROM task WHERE realm = ?1
            UNION ALL SELECT max(written_ms) FROM note WHERE realm = ?1
            UNION ALL SELECT max(sent_ms) FROM mail WHERE realm = ?1)";
    let used: Option<i64> =
        connection.prepare_cached(sql)?.query_row([realm.as_bytes()], |row| row.get(0))?;
    // A team that was imported may be older than its realm, whose id tells when it was made.
    let made = realm.get_timestamp().and_then(|at| {
        let (seconds, nanos) = at.to_unix();
        i64::try_from(seconds * 1000 + u64::from(nanos / 1_000_000)).ok()
    });
    if used.max(made).is_some_and(|used| used >= before_ms) {
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

fn count(connection: &Connection, realm: Uuid) -> Result<Collected, Failure> {
    let number = |sql: &str| -> Result<u64, Failure> {
        let mut statement = connection.prepare_cached(sql)?;
        Ok(column::from_bits(statement.query_row([realm.as_bytes()], |row| row.get(0))?))
    };
    Ok(Collected {
        sessions: number("SELECT count(*) FROM agent WHERE realm = ?1 AND parent IS NULL")?,
        agents: number("SELECT count(*) FROM agent WHERE realm = ?1")?,
        teams: number("SELECT count(*) FROM team WHERE realm = ?1")?,
        bytes: number(
            "SELECT coalesce(sum(size), 0) FROM (
                SELECT sum(length(bytes)) AS size FROM entry WHERE realm = ?1
                UNION ALL SELECT sum(length(bytes)) FROM preamble WHERE realm = ?1
                UNION ALL SELECT sum(octet_length(content)) FROM call WHERE realm = ?1
                UNION ALL SELECT sum(octet_length(summary) + octet_length(body)) FROM mail WHERE realm = ?1)",
        )?,
    })
}

/// One transaction, when it is our turn.
fn in_turn<T>(
    turnstile: Option<&Turnstile>,
    connection: &Connection,
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let _pass = turnstile.map(|turnstile| turnstile.enter(Timing::default().patience)).transpose()?;
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    let done = act()?;
    transaction.commit()?;
    Ok(done)
}

/// Removes the rows by which a realm is found: from then on nobody sees, takes or joins anything of it. If
/// the rest is not removed now, it is the next time.
fn behead(connection: &Connection, realm: Uuid) -> Result<(), Failure> {
    for table in ["agent", "team", "member", "inbox", "list"] {
        let sql = format!("DELETE FROM {table} WHERE realm = ?1");
        connection.prepare_cached(&sql)?.execute([realm.as_bytes()])?;
    }
    Ok(())
}

/// Removes all other rows of a realm, in batches.
fn empty(turnstile: Option<&Turnstile>, connection: &Connection, realm: Uuid) -> Result<(), Failure> {
    const KEYS: [(&str, &str); 13] = [
        ("ask", "agent, id"),
        ("run", "agent, id"),
        ("note", "team, name"),
        ("task", "team, id"),
        ("dependency", "team, task, needs"),
        ("mail", "recipient, number"),
        ("segment", "agent, ordinal"),
        ("call", "agent, seq, ordinal"),
        ("charge", "agent, model, nth"),
        ("total", "agent, model"),
        ("seen", "agent, path"),
        ("entry", "agent, seq"),
        ("preamble", "hash"),
    ];
    for (table, key) in KEYS {
        let sql = format!(
            "DELETE FROM {table} WHERE realm = ?1 AND ({key}) IN
                 (SELECT {key} FROM {table} WHERE realm = ?1 LIMIT ?2)"
        );
        loop {
            let removed = in_turn(turnstile, connection, || {
                Ok(connection.prepare_cached(&sql)?.execute(params![realm.as_bytes(), BATCH as i64])?)
            })?;
            if removed < BATCH {
                break;
            }
        }
    }
    Ok(())
}
