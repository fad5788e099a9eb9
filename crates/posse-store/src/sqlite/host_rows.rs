//! The rows of hosts. A host has one from its first agent until it is released.

use std::collections::BTreeSet;

use rusqlite::Connection;
use uuid::Uuid;

use super::column;
use super::host::HostLiveness;
use super::place::DatabasePlace;

/// Returns the hosts that have a row.
pub(super) fn hosts(connection: &Connection) -> rusqlite::Result<BTreeSet<Uuid>> {
    let mut statement = connection.prepare_cached("SELECT id FROM host")?;
    statement.query_map([], |row| column::id(row, 0))?.collect()
}

/// Returns hosts that died without being released. Hosts that cannot be examined are left out.
pub(super) fn dead_hosts(
    place: &DatabasePlace,
    connection: &Connection,
) -> rusqlite::Result<Vec<Uuid>> {
    let all = hosts(connection)?;
    let look = place.hosts();
    Ok(all
        .into_iter()
        .filter(|host| matches!(look.look(*host), Ok(HostLiveness::Dead)))
        .collect())
}
