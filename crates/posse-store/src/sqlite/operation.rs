//! Operations on mail, tasks and teams, in the open transaction.
//!
//! An operation checks everything before it writes: one that is refused has changed nothing, and
//! needs no savepoint.

mod change;
mod claim;
mod create;
mod import;
mod lead;
mod name;
mod note;
mod question;
mod request;
mod send;
mod team;
mod transaction;

use posse_port::store::{
    Charge, Done, METADATA_DEPTH, Op, OpResult, Order, Refusal, TEXT_BYTES, depth,
};
use posse_protocol::{AgentId, Response};
use rusqlite::Connection;
use serde_json::{Map, Value};

use super::changes::Changes;
use super::error::SqliteFailure;
use super::place::DatabasePlace;
use super::{charge, column};

#[cfg(test)]
pub(super) use claim::DOES;
pub(super) use import::import;
pub(super) use lead::stop_leading;
#[cfg(test)]
pub(super) use name::HIGHEST;
pub(super) use transaction::WriteTransaction;

/// The name of the person in mail and tasks.
const USER: &str = "user";

/// Performs the operations that a person asked for. Returns their results.
pub(super) fn order(
    place: &DatabasePlace,
    connection: &Connection,
    order: &Order,
    changes: &mut Changes,
) -> Result<Vec<OpResult>, SqliteFailure> {
    let (realm, at_ms) = (order.realm, order.at_ms);
    let mut transaction = WriteTransaction {
        place,
        connection,
        realm,
        actor: None,
        at_ms,
        changes,
    };
    order
        .ops
        .iter()
        .map(|op| perform(&mut transaction, op))
        .collect()
}

/// Why an operation stops.
enum OperationError {
    Refused(Refusal),
    Failed(SqliteFailure),
}

/// Performs one operation. Returns what it did, or why it was refused.
pub(super) fn perform(tx: &mut WriteTransaction<'_>, op: &Op) -> Result<OpResult, SqliteFailure> {
    let done = match op {
        Op::Send {
            id,
            to,
            kind,
            summary,
            body,
        } => {
            let always = send::always_fits(*kind);
            send::send(
                tx,
                to,
                &send::Letter {
                    id: *id,
                    kind: *kind,
                    summary,
                    body,
                    always,
                },
            )
        }
        Op::Charge { agent, charge } => book_charge(tx, *agent, charge),
        Op::Answer { question, answer } => question::answer(tx, *question, answer),
        Op::CreateTeam {
            team,
            description,
            settings,
            lead,
        } => team::create_team(tx, team, description, settings, lead),
        Op::DeleteTeam { team } => team::delete_team(tx, team),
        Op::Join {
            team,
            name,
            member,
            greeting,
        } => team::join(tx, team, name, member, greeting.as_ref()),
        Op::HandOver { team, to } => lead::hand_over(tx, team, to),
        Op::Leave { team, name } => team::leave(tx, team, name),
        Op::Request { id, to, kind, text } => request::request(tx, *id, to, *kind, text),
        Op::Respond {
            id,
            request,
            kind,
            approve,
            text,
        } => {
            let response = Response {
                request_id: *request,
                approve: *approve,
                text: text.clone(),
            };
            request::respond(tx, *id, *kind, &response)
        }
        Op::WriteNote {
            team,
            name,
            text,
            expect,
        } => note::write_note(tx, team.as_ref(), name, text, *expect),
        Op::CreateTask { team, task } => create::create_task(tx, team.as_ref(), task),
        Op::UpdateTask {
            team,
            id,
            expect,
            change,
        } => change::update_task(tx, team.as_ref(), *id, *expect, change),
        Op::Claim { team, id } => claim::claim(tx, team.as_ref(), *id),
        Op::ClaimNext { team, takes } => claim::claim_next(tx, team.as_ref(), takes),
    };
    match done {
        Ok(done) => Ok(Ok(done)),
        Err(OperationError::Refused(refusal)) => Ok(Err(refusal)),
        Err(OperationError::Failed(failure)) => Err(failure),
    }
}

/// Books the cost of a model call made about an agent. Does not count as use of the agent.
fn book_charge(tx: &WriteTransaction<'_>, agent: AgentId, charge: &Charge) -> OperationResult {
    if tx.path(agent)?.is_none() {
        return Err(OperationError::Refused(Refusal::NoSuchAgent { agent }));
    }
    charge::book(
        tx.connection,
        &tx.realm_key(),
        agent.uuid().as_bytes(),
        charge,
        tx.at_ms,
    )?;
    Ok(Done::Charged)
}

/// Refuses a text that is longer than a task or a note may be.
fn fits(bytes: usize) -> Result<(), OperationError> {
    match bytes > TEXT_BYTES {
        true => Err(OperationError::Refused(Refusal::TooLong {
            bytes,
            most: TEXT_BYTES,
        })),
        false => Ok(()),
    }
}

/// Refuses a task whose texts are too long, or whose metadata nest too deeply.
fn fits_task<'a>(
    texts: impl IntoIterator<Item = Option<&'a str>>,
    metadata: &Map<String, Value>,
) -> Result<(), OperationError> {
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    let more = if metadata.is_empty() {
        0
    } else {
        column::json(metadata)?.len()
    };
    fits(texts + more)?;
    if metadata.values().any(|value| depth(value) > METADATA_DEPTH) {
        return Err(OperationError::Refused(Refusal::TooDeep {
            most: METADATA_DEPTH,
        }));
    }
    Ok(())
}

impl From<Refusal> for OperationError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<SqliteFailure> for OperationError {
    fn from(failure: SqliteFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<rusqlite::Error> for OperationError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}

type OperationResult = Result<Done, OperationError>;
