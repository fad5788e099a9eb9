//! Taking an agent and giving it up, in the open transaction.

use posse_protocol::AgentId;
use posse_runtime::port::store::{Epoch, StoreError};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::column;
use super::error::Failure;
use super::place::Place;

/// Makes `me` the agent's holder, with a new epoch, unless another live host is.
pub(super) fn take(
    connection: &Connection,
    agent: AgentId,
    me: Uuid,
    place: &Place,
) -> Result<Epoch, Failure> {
    let id = agent.uuid();
    let sql = "SELECT host FROM agent WHERE id = ?1";
    let holder = connection
        .prepare_cached(sql)?
        .query_row([id.as_bytes()], |row| column::maybe_id(row, 0))
        .optional()?
        .ok_or(Failure::Refused(StoreError::NotFound { agent }))?;
    if let Some(other) = holder.filter(|host| *host != me) {
        let hosts = place.hosts();
        let alive = hosts.alive(other).map_err(|error| Failure::Refused(place.failed(error)))?;
        if let Some(holder) = alive {
            return Err(Failure::Refused(StoreError::Held { agent, holder }));
        }
        hosts.bury(other);
    }
    let sql = "UPDATE agent SET epoch = epoch + 1, host = ?2 WHERE id = ?1 RETURNING epoch";
    let mut statement = connection.prepare_cached(sql)?;
    let epoch = statement.query_row(params![id.as_bytes(), me.as_bytes()], |row| row.get(0))?;
    Ok(Epoch(column::from_bits(epoch)))
}

/// Gives the agent up, if `epoch` is still its epoch.
pub(super) fn release(connection: &Connection, agent: AgentId, epoch: Epoch) -> Result<(), Failure> {
    let sql = "UPDATE agent SET host = NULL WHERE id = ?1 AND epoch = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute(params![agent.uuid().as_bytes(), column::bits(epoch.0)])?;
    Ok(())
}
