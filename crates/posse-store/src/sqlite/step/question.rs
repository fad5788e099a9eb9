//! Questions to people that an agent asks. Each is asked once, and closed once by its agent.

use posse_port::store::{NewQuestion, QuestionChange, QuestionChangeKind, QuestionState};
use rusqlite::params;

use super::{SqliteFailure, StepWriter, column};
use crate::columns;

/// Asks or closes a question.
pub(super) fn change(
    writer: &StepWriter<'_>,
    QuestionChange { id, change }: &QuestionChange,
) -> Result<(), SqliteFailure> {
    let (realm, agent, key) = (writer.realm, writer.agent, id.uuid().into_bytes());
    let changed = match change {
        QuestionChangeKind::Asked(new) => {
            let NewQuestion { call, question } = &**new;
            let sql = "INSERT INTO question
                               (realm, id, agent, call_seq, call_ordinal, state, asked_ms, question)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
            writer.connection.prepare_cached(sql)?.execute(params![
                realm,
                key,
                agent,
                column::bits(call.seq),
                call.ordinal,
                columns::question(QuestionState::Open),
                writer.at_ms,
                column::json(question)?,
            ])?
        }
        QuestionChangeKind::Done => {
            let sql = "UPDATE question SET state = 2
                           WHERE realm = ?1 AND id = ?2 AND agent = ?3 AND state = 1";
            let mut statement = writer.connection.prepare_cached(sql)?;
            statement.execute(params![realm, key, agent])?
        }
        QuestionChangeKind::Withdrawn => {
            let sql = "UPDATE question SET state = 3
                           WHERE realm = ?1 AND id = ?2 AND agent = ?3 AND state < 2";
            let mut statement = writer.connection.prepare_cached(sql)?;
            statement.execute(params![realm, key, agent])?
        }
    };
    match changed {
        0 => Err(SqliteFailure::bad_step(format!(
            "question {id} cannot become {change:?}"
        ))),
        _ => Ok(()),
    }
}

/// Withdraws all questions of an agent that ends.
pub(super) fn withdraw_all(writer: &StepWriter<'_>) -> Result<(), SqliteFailure> {
    let sql = "UPDATE question INDEXED BY question_agent SET state = 3
                   WHERE realm = ?1 AND agent = ?2 AND state < 2";
    writer
        .connection
        .prepare_cached(sql)?
        .execute([writer.realm, writer.agent])?;
    Ok(())
}
