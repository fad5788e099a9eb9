//! Taking and releasing an agent, in the open transaction.

use posse_port::store::{Epoch, StoreError};
use posse_protocol::{AgentId, RealmId};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::changes::Changes;
use super::column;
use super::error::SqliteFailure;
use super::feed::NewFeedRow;
use super::free;
use super::host::HostLiveness;
use super::place::DatabasePlace;

/// Makes `me` the agent's holder with a new epoch, unless another host holds it that is alive and
/// not stalled.
pub(super) fn take(
    connection: &Connection,
    agent: AgentId,
    me: Uuid,
    place: &DatabasePlace,
    changes: &mut Changes,
) -> Result<Epoch, SqliteFailure> {
    let id = agent.uuid();
    let sql = "SELECT host FROM agent WHERE id = ?1";
    let holder = connection
        .prepare_cached(sql)?
        .query_row([id.as_bytes()], |row| column::maybe_id(row, 0))
        .optional()?
        .ok_or(SqliteFailure::Refused(StoreError::NotFound { agent }))?;
    if let Some(other) = holder.filter(|host| *host != me) {
        let hosts = place.hosts();
        match hosts
            .look(other)
            .map_err(|error| SqliteFailure::Refused(place.failed(error)))?
        {
            HostLiveness::Alive { pid } => {
                let holder = format!("pid {pid}");
                return Err(SqliteFailure::Refused(StoreError::Held { agent, holder }));
            }
            // Its files stay: it may continue one day, and then learns from its bell what it has
            // lost.
            HostLiveness::Stalled { .. } => free::host(connection, other, changes)?,
            HostLiveness::Dead => {
                free::host(connection, other, changes)?;
                hosts.forget(other);
            }
        }
    }
    let sql = "UPDATE agent SET epoch = epoch + 1, host = ?2 WHERE id = ?1 RETURNING epoch, realm";
    let mut statement = connection.prepare_cached(sql)?;
    let (epoch, realm) = statement.query_row(params![id.as_bytes(), me.as_bytes()], |row| {
        Ok((column::from_bits(row.get(0)?), column::id(row, 1)?))
    })?;
    let sql = "UPDATE inbox SET host = ?3 WHERE realm = ?1 AND agent = ?2 RETURNING waiting";
    let waiting: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row(
            params![realm.as_bytes(), id.as_bytes(), me.as_bytes()],
            |row| row.get(0),
        )
        .optional()?;
    if waiting.is_some_and(|waiting| waiting > 0) {
        changes.mail(me, agent);
    }
    changes.feed(realm.into(), NewFeedRow::holder(agent));
    Ok(Epoch(epoch))
}

/// Releases the agent if `epoch` is still its epoch.
pub(super) fn release(
    connection: &Connection,
    agent: AgentId,
    epoch: Epoch,
    changes: &mut Changes,
) -> Result<(), SqliteFailure> {
    // A new epoch, so that a late step of the former holder is refused.
    let sql = "UPDATE agent SET epoch = epoch + 1, host = NULL WHERE id = ?1 AND epoch = ?2 RETURNING realm";
    let realm: Option<RealmId> = connection
        .prepare_cached(sql)?
        .query_row(
            params![agent.uuid().as_bytes(), column::bits(epoch.0)],
            |row| column::id(row, 0),
        )
        .optional()?
        .map(RealmId::from);
    if let Some(realm) = realm {
        changes.feed(realm, NewFeedRow::holder(agent));
        free::inbox(connection, realm, agent)?;
        free::tasks(connection, realm, agent, None, changes)?;
    }
    Ok(())
}
