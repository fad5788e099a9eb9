//! The feed of each realm, in the open transaction.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use posse_port::store::{FeedPage, FeedRow, Topics};
use posse_protocol::{AgentId, RealmId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::column;
use super::error::SqliteFailure;
use crate::feed_watch::FeedTail;

/// Number of blocks that one trim removes at most; the rest waits for the next one.
const BLOCKS: usize = 100;

/// Number of rows that readers share at most; one that is further behind queries by itself.
const TAIL: usize = 128;

/// The rows after a number.
pub(super) const ROWS: &str = "SELECT number, agent, at_ms, what, seq, count FROM feed
    WHERE realm = ?1 AND number > ?2 ORDER BY number LIMIT ?3";

/// The number of the last row.
pub(super) const LAST: &str =
    "SELECT number FROM feed WHERE realm = ?1 ORDER BY number DESC LIMIT 1";

/// The number of the last row of a realm whose rows are all removed.
pub(super) const KEPT: &str = "SELECT head FROM feed_head WHERE realm = ?1";

/// Blocks that are older than a time, oldest first.
pub(super) const OLD: &str = "SELECT realm, number FROM feed INDEXED BY feed_age
    WHERE number % 64 = 0 AND at_ms < ?1 ORDER BY at_ms LIMIT ?2";

/// Removes everything up to the end of a block.
pub(super) const TRIM: &str = "DELETE FROM feed WHERE realm = ?1 AND number <= ?2";

/// A row that has no number yet.
#[derive(Clone, Copy)]
pub(super) struct NewFeedRow {
    pub(super) agent: Option<AgentId>,
    pub(super) topics: Topics,
    pub(super) seq: u64,
    pub(super) count: u64,
}

/// Rows of a batch, by realm.
pub(super) type NewFeedRows = BTreeMap<RealmId, Vec<NewFeedRow>>;

impl NewFeedRow {
    /// A row about the holder of an agent.
    pub(super) fn holder(agent: AgentId) -> Self {
        Self {
            agent: Some(agent),
            topics: Topics::HOLDER,
            seq: 0,
            count: 0,
        }
    }

    /// A row about the realm.
    pub(super) fn realm(topics: Topics) -> Self {
        Self {
            agent: None,
            topics,
            seq: 0,
            count: 0,
        }
    }
}

/// Writes rows under the next numbers of their realms. Returns the last number of each realm.
pub(super) fn write(
    connection: &Connection,
    rows: &NewFeedRows,
) -> rusqlite::Result<Vec<(RealmId, u64)>> {
    let now_ms = now_ms();
    let mut heads = Vec::with_capacity(rows.len());
    for (realm, rows) in rows {
        let key = realm.uuid().into_bytes();
        let head = last(connection, key)?;
        let sql = "INSERT INTO feed (realm, number, agent, at_ms, what, seq, count)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut insert = connection.prepare_cached(sql)?;
        for (row, number) in rows.iter().zip(head + 1..) {
            insert.execute(params![
                key,
                number,
                row.agent.map(|agent| agent.uuid().into_bytes()),
                now_ms,
                row.topics.bits(),
                column::bits(row.seq),
                column::bits(row.count),
            ])?;
        }
        heads.push((*realm, column::from_bits(head + rows.len() as i64)));
    }
    Ok(heads)
}

/// Returns the last number of a realm.
pub(super) fn head(connection: &Connection, realm: RealmId) -> rusqlite::Result<u64> {
    last(connection, realm.uuid().into_bytes()).map(column::from_bits)
}

/// Returns the number of the last row of a realm; if all are removed, the number that was kept.
fn last(connection: &Connection, realm: [u8; 16]) -> rusqlite::Result<i64> {
    for sql in [LAST, KEPT] {
        let mut statement = connection.prepare_cached(sql)?;
        if let Some(number) = statement.query_row([realm], |row| row.get(0)).optional()? {
            return Ok(number);
        }
    }
    Ok(0)
}

/// Returns the rows of a realm after a number.
pub(super) fn page(
    connection: &Connection,
    realm: RealmId,
    after: u64,
    limit: usize,
) -> Result<FeedPage, SqliteFailure> {
    Ok(FeedPage {
        head: head(connection, realm)?,
        rows: rows(connection, realm, after, limit)?,
    })
}

/// Returns what readers that have everything up to a number wait for.
pub(super) fn tail(
    connection: &Connection,
    realm: RealmId,
    after: u64,
) -> rusqlite::Result<FeedTail> {
    let rows = rows(connection, realm, after, TAIL)?;
    if let Some(last) = rows.last()
        && rows.len() < TAIL
    {
        return Ok(FeedTail::new(last.number, after, rows));
    }
    let head = head(connection, realm)?;
    Ok(FeedTail::new(head, head, Vec::new()))
}

fn rows(
    connection: &Connection,
    realm: RealmId,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<FeedRow>> {
    let mut statement = connection.prepare_cached(ROWS)?;
    let key = realm.uuid();
    let rows = statement.query_map(
        params![key.as_bytes(), column::most(after), column::most(limit)],
        row,
    )?;
    rows.collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<FeedRow> {
    Ok(FeedRow {
        number: column::from_bits(row.get(0)?),
        agent: column::maybe_id(row, 1)?.map(AgentId::from),
        at_ms: row.get(2)?,
        topics: Topics::from_bits(row.get(3)?),
        seq: column::from_bits(row.get(4)?),
        count: column::from_bits(row.get(5)?),
    })
}

/// Returns true if there is a block that is older than `age`.
pub(super) fn has_old(connection: &Connection, age: Duration) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(OLD)?;
    statement.exists(params![now_ms() - millis(age), 1])
}

/// Removes blocks that are older than `age`, some at a time.
pub(super) fn trim(connection: &Connection, age: Duration) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(OLD)?;
    let old: Vec<([u8; 16], i64)> = statement
        .query_map(params![now_ms() - millis(age), BLOCKS as i64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut delete = connection.prepare_cached(TRIM)?;
    let sql = "INSERT OR REPLACE INTO feed_head (realm, head) VALUES (?1, ?2)";
    let mut keep = connection.prepare_cached(sql)?;
    for (realm, number) in old {
        if last(connection, realm)? == number {
            keep.execute(params![realm, number])?;
        }
        delete.execute(params![realm, number])?;
    }
    Ok(())
}

fn now_ms() -> i64 {
    // A clock before 1970 only makes rows look old.
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, millis)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
