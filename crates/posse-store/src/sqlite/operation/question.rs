//! Answers to questions.

use posse_port::store::{Done, QuestionState, Refusal};
use posse_protocol::{AgentId, GivenAnswer, QuestionId};
use rusqlite::{OptionalExtension, params};

use super::{OperationResult, WriteTransaction, column};

/// Answers a question, if it is open.
pub(super) fn answer(
    tx: &mut WriteTransaction<'_>,
    question: QuestionId,
    answer: &GivenAnswer,
) -> OperationResult {
    let (realm, id) = (tx.realm_key(), question.uuid().into_bytes());
    let sql = "SELECT agent, state FROM question WHERE realm = ?1 AND id = ?2";
    let found = tx
        .connection
        .prepare_cached(sql)?
        .query_row(params![realm, id], |row| {
            let agent = AgentId::from(column::id(row, 0)?);
            Ok((agent, column::question_state(row, 1)?))
        })
        .optional()?;
    let (agent, state) = found.ok_or(Refusal::NoSuchQuestion { question })?;
    if state != QuestionState::Open {
        return Err(Refusal::QuestionClosed { question, state }.into());
    }
    let sql = "UPDATE question SET state = 1, answer = ?3, answered_ms = ?4
               WHERE realm = ?1 AND id = ?2";
    let answer = column::json(answer)?;
    tx.connection
        .prepare_cached(sql)?
        .execute(params![realm, id, answer, tx.at_ms])?;
    let host = tx.host(agent)?;
    if let Some(host) = host {
        tx.changes.mail(host, agent);
    }
    Ok(Done::Answered {
        agent,
        held: host.is_some(),
    })
}
