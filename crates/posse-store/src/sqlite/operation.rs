//! Operations on mail, tasks and teams, in the open transaction.

use posse_runtime::port::store::{Archive, OpResult, Order, Refusal};
use rusqlite::Connection;

use super::error::Failure;
use super::news::News;
use super::place::Place;

/// Does what a person asks for.
pub(super) fn order(
    _place: &Place,
    _connection: &Connection,
    order: &Order,
    _news: &mut News,
) -> Result<Vec<OpResult>, Failure> {
    Ok(order.ops.iter().map(|_| Err(Refusal::NothingToClaim)).collect())
}

/// Makes a team of an archive.
pub(super) fn import(_connection: &Connection, _archive: &Archive) -> Result<(), Failure> {
    Ok(())
}
