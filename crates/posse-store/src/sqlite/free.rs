//! Releasing what agents and hosts held that are gone.

use std::collections::BTreeSet;

use posse_protocol::{AgentId, ListId, Name, RealmId};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::changes::Changes;
use super::column;
use super::error::SqliteFailure;
use super::feed::NewFeedRow;
use super::host::HostLiveness;
use super::place::DatabasePlace;

/// Makes an agent's tasks in progress pending. They are found by their owner's index, regardless
/// of how many tasks there are.
pub(super) const TASKS: &str = "UPDATE task INDEXED BY task_owner
    SET status = 0, lost_by = owner, owner = NULL, owner_agent = NULL, version = version + 1
    WHERE realm = ?1 AND owner_agent = ?2 AND status = 1 AND team = coalesce(?3, team) RETURNING team";

/// Removes the owner of pending tasks that were assigned to an agent.
pub(super) const AHEAD: &str = "UPDATE task INDEXED BY task_ahead
    SET owner = NULL, owner_agent = NULL, version = version + 1
    WHERE realm = ?1 AND owner_agent = ?2 AND status = 0 AND team = coalesce(?3, team) RETURNING team, waits = 0";

/// Returns true if a host is dead or stalled, so that others may take what it holds.
pub(super) fn gone(place: &DatabasePlace, host: Uuid) -> bool {
    // If that cannot be determined, nothing is taken from it.
    matches!(
        place.hosts().look(host),
        Ok(HostLiveness::Dead | HostLiveness::Stalled { .. })
    )
}

/// Releases everything a host held: its agents get a new epoch and no holder, their tasks become
/// pending.
pub(super) fn host(
    connection: &Connection,
    host: Uuid,
    changes: &mut Changes,
) -> Result<(), SqliteFailure> {
    let sql = "UPDATE agent SET epoch = epoch + 1, host = NULL WHERE host = ?1 RETURNING realm, id";
    let mut statement = connection.prepare_cached(sql)?;
    let held: Vec<(RealmId, AgentId)> = statement
        .query_map([host.as_bytes()], |row| {
            Ok((column::id(row, 0)?.into(), column::id(row, 1)?.into()))
        })?
        .collect::<Result<_, _>>()?;
    for (realm, agent) in held {
        changes.feed(realm, NewFeedRow::holder(agent));
        inbox(connection, realm, agent)?;
        tasks(connection, realm, agent, None, changes)?;
    }
    connection
        .prepare_cached("DELETE FROM host WHERE id = ?1")?
        .execute([host.as_bytes()])?;
    changes.freed.insert(host);
    Ok(())
}

/// Notes that nobody holds the agent of an inbox any more.
pub(super) fn inbox(
    connection: &Connection,
    realm: RealmId,
    agent: AgentId,
) -> Result<(), SqliteFailure> {
    let sql = "UPDATE inbox SET host = NULL WHERE realm = ?1 AND agent = ?2";
    connection
        .prepare_cached(sql)?
        .execute([realm.uuid().as_bytes(), agent.uuid().as_bytes()])?;
    Ok(())
}

/// Makes the tasks that an agent was doing pending, in one list or in all, and notes who had them.
pub(super) fn tasks(
    connection: &Connection,
    realm: RealmId,
    agent: AgentId,
    team: Option<&str>,
    changes: &mut Changes,
) -> Result<(), SqliteFailure> {
    let (realm_id, agent) = (realm.uuid(), agent.uuid());
    let mut statement = connection.prepare_cached(TASKS)?;
    let teams: BTreeSet<String> = statement
        .query_map(
            params![realm_id.as_bytes(), agent.as_bytes(), team],
            |row| row.get(0),
        )?
        .collect::<Result<_, _>>()?;
    for team in teams {
        // Only what is a name, or empty for the session's list, was ever written.
        claimable(connection, realm, team.parse().ok(), changes)?;
    }
    Ok(())
}

/// Removes an agent as owner of its pending tasks, in one list or in all: nobody else could start
/// them.
pub(super) fn unassign(
    connection: &Connection,
    realm: RealmId,
    agent: AgentId,
    team: Option<&str>,
    changes: &mut Changes,
) -> Result<(), SqliteFailure> {
    let (realm_id, agent) = (realm.uuid(), agent.uuid());
    let mut statement = connection.prepare_cached(AHEAD)?;
    let tasks: BTreeSet<(String, bool)> = statement
        .query_map(
            params![realm_id.as_bytes(), agent.as_bytes(), team],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<_, _>>()?;
    for (team, _) in tasks.into_iter().filter(|(_, ready)| *ready) {
        claimable(connection, realm, team.parse().ok(), changes)?;
    }
    Ok(())
}

/// Notes that a task of a list has become claimable.
pub(super) fn claimable(
    connection: &Connection,
    realm: RealmId,
    team: Option<Name>,
    changes: &mut Changes,
) -> Result<(), SqliteFailure> {
    let list = ListId { realm, team };
    // Even if the list is already among the changes: what put it there may have been rolled back.
    let sql = "UPDATE changes SET last = last + 1 RETURNING last";
    let change: i64 = connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))?;
    let sql = "UPDATE list SET changed = ?3 WHERE realm = ?1 AND team = ?2";
    let name = column::team(list.team.as_ref());
    connection
        .prepare_cached(sql)?
        .execute(params![realm.uuid().as_bytes(), name, change])?;
    changes.lists.insert(list);
    Ok(())
}
