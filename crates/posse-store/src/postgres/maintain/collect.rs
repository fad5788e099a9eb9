//! Removal of realms that have not been used for a long time.

use posse_port::store::StoreError;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{PgFailure, at, column};
use crate::maintain::{Collected, Unused};

/// Number of rows removed per transaction.
const BATCH: i64 = 200;

/// Number of realms per query.
const PAGE: i64 = 500;

/// A page of realms, with a description of those that may be removed. The number of rows tells
/// how many realms were looked at.
const REALMS: &str =
    "SELECT r.id, u.is_unused, u.used, u.sessions, u.agents, u.teams, u.leads, f.id, f.cwd,
        u.bytes
    FROM (SELECT id, unused(id, $2) AS is_unused FROM realm WHERE id > $1 ORDER BY id LIMIT $3) r
    LEFT JOIN LATERAL (SELECT true AS is_unused, coalesce(used_ms(r.id), 0) AS used,
        (SELECT count(*) FROM agent WHERE realm = r.id AND parent IS NULL) AS sessions,
        (SELECT count(*) FROM agent WHERE realm = r.id) AS agents,
        (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM entry WHERE realm = r.id) AS bytes,
        ARRAY(SELECT name FROM team WHERE realm = r.id ORDER BY name) AS teams,
        ARRAY(SELECT lead FROM team WHERE realm = r.id ORDER BY name) AS leads) u ON r.is_unused
    LEFT JOIN LATERAL (SELECT id, cwd FROM agent WHERE realm = r.id AND parent IS NULL
        ORDER BY created_ms, id LIMIT 1) f ON r.is_unused
    ORDER BY r.id";

/// Returns what [`collect`] would remove, most recently used first.
pub fn unused(url: &str, before_ms: i64) -> Result<Vec<Unused>, StoreError> {
    at(url, async |link| {
        let client = link.client().await?;
        let (mut found, mut after) = (Vec::new(), Uuid::nil());
        loop {
            let rows = client.query(REALMS, &[&after, &before_ms, &PAGE]).await?;
            for row in &rows {
                after = column::get(row, 0)?;
                found.extend(described(row)?);
            }
            if rows.len() < PAGE as usize {
                break;
            }
        }
        found.sort_by_key(|it| std::cmp::Reverse(it.used_ms));
        Ok(found)
    })
}

/// Removes whole realms in which nothing has happened since `before_ms` and no agent is held by a
/// live host. Writers of a realm wait for one small batch at most. `told` is called with what has
/// been removed so far.
pub fn collect(
    url: &str,
    before_ms: i64,
    told: &mut dyn FnMut(Collected),
) -> Result<Collected, StoreError> {
    collect_those(url, before_ms, &|_| true, told)
}

/// Like [`collect`], but only those that are `meant`.
pub fn collect_those(
    url: &str,
    before_ms: i64,
    meant: &dyn Fn(&Unused) -> bool,
    told: &mut dyn FnMut(Collected),
) -> Result<Collected, StoreError> {
    at(url, async |link| {
        let client = link.client().await?;
        let (behead, empty) = ("SELECT behead($1, $2)", "SELECT * FROM empty_realm($1, $2)");
        let (behead, empty) = (
            client.prepare_cached(behead).await?,
            client.prepare_cached(empty).await?,
        );
        let (mut sum, mut after) = (Collected::default(), Uuid::nil());
        loop {
            let rows = client.query(REALMS, &[&after, &before_ms, &PAGE]).await?;
            for row in &rows {
                after = column::get(row, 0)?;
                // This looks without a lock; `behead` asks again under the realm's lock.
                let Some(gone) = described(row)?.filter(|it| meant(it)) else {
                    continue;
                };
                if !column::get::<bool>(
                    &client.query_one(&behead, &[&after, &before_ms]).await?,
                    0,
                )? {
                    continue;
                }
                // In batches, because a realm's rows may be many and its lock is held during each
                // one.
                let mut more = true;
                while more {
                    let row = client.query_one(&empty, &[&after, &BATCH]).await?;
                    sum.bytes += column::bits(&row, 0)?;
                    more = column::get(&row, 1)?;
                }
                sum.sessions += gone.sessions;
                sum.agents += gone.agents;
                sum.teams += gone.teams.len() as u64;
                told(sum);
            }
            if rows.len() < PAGE as usize {
                return Ok(sum);
            }
        }
    })
}

/// Returns the description of a realm, if it may be removed.
fn described(row: &Row) -> Result<Option<Unused>, PgFailure> {
    if column::get::<Option<bool>>(row, 1)?.is_none() {
        return Ok(None);
    }
    let (first, leads) = (
        column::get::<Option<Uuid>>(row, 7)?,
        column::get::<Vec<Uuid>>(row, 6)?,
    );
    Ok(Some(Unused {
        id: first
            .or(leads.first().copied())
            .map_or_else(|| column::get(row, 0), Ok)?,
        sessions: column::bits(row, 3)?,
        agents: column::bits(row, 4)?,
        teams: column::get(row, 5)?,
        used_ms: column::get(row, 2)?,
        bytes: column::bits(row, 9)?,
        cwd: first.map(|_| column::path(row, 8)).transpose()?,
    }))
}
