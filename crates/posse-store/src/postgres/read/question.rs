//! Queries for questions to people.

use posse_port::store::{
    CallKey, Page, QuestionFilter, QuestionKey, QuestionRecord, QuestionState,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{PgFailure, PgReader, column};
use crate::columns;

/// A question's columns, in the order of [`question`].
const QUESTION: &str =
    "SELECT realm, agent, call_seq, call_ordinal, question, asked_ms, state, answer,
    answered_ms FROM question";

/// An agent's questions that it has not finished with, oldest first. An index covers only these.
pub(super) const OWN: &str = "SELECT realm, agent, call_seq, call_ordinal, question, asked_ms, state, answer,
    answered_ms FROM question
    WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1 AND state < 2 ORDER BY asked_ms, id";

/// Types of the parameters of [`questions`].
const TYPES: [Type; 7] = [
    Type::UUID,
    Type::UUID,
    Type::UUID,
    Type::UUID,
    Type::INT8,
    Type::UUID,
    Type::INT8,
];

/// Returns the query for questions: of realm 1 and agent 2, with ids from 3 to 4, beyond the time 5
/// and the id 6, at most 7.
pub(super) fn questions(filter: &QuestionFilter, page: &Page<QuestionKey>) -> String {
    let given = |given: bool, yes: &'static str| if given { yes } else { "true" };
    let realm = given(filter.realm.is_some(), "realm = $1");
    let agent = given(filter.agent.is_some(), "agent = $2 AND state < 2");
    let id = given(filter.id_prefix.is_some(), "id BETWEEN $3 AND $4");
    let open = given(filter.open, "state = 0");
    let (than, way) = columns::rising(page);
    let beyond = match page.from {
        Some(_) => format!("(asked_ms, id) {than} ($5, $6)"),
        None => "true".into(),
    };
    format!(
        "{QUESTION} WHERE {realm} AND {agent} AND {open} AND {id} AND {beyond}
         ORDER BY asked_ms {way}, id {way} LIMIT $7"
    )
}

/// Returns questions, oldest first.
pub(in super::super) async fn list(
    reader: &PgReader<'_>,
    filter: &QuestionFilter,
    page: &Page<QuestionKey>,
) -> Result<Vec<QuestionRecord>, PgFailure> {
    let prefix = filter.id_prefix.as_deref().unwrap_or_default();
    let Some((first, last)) = columns::ids_with(prefix) else {
        return Ok(Vec::new());
    };
    let realm = filter.realm.map(|realm| realm.uuid());
    let agent = filter.agent.map(|agent| agent.uuid());
    let asked_ms = page.from.map(|from| from.asked_ms);
    let from: Option<Uuid> = page.from.map(|from| from.id.uuid());
    let limit = column::most(page.limit);
    let sql = questions(filter, page);
    let values: &super::QueryValues<'_> =
        &[&realm, &agent, &first, &last, &asked_ms, &from, &limit];
    let rows = reader.typed_rows(&sql, &TYPES, values).await?;
    let mut found: Vec<_> = rows.iter().map(question).collect::<Result<_, _>>()?;
    if page.backwards {
        found.reverse();
    }
    Ok(found)
}

/// Returns a question.
pub(super) fn question(row: &Row) -> Result<QuestionRecord, PgFailure> {
    Ok(QuestionRecord {
        realm: column::get::<Uuid>(row, 0)?.into(),
        agent: column::get::<Uuid>(row, 1)?.into(),
        call: CallKey {
            seq: column::bits(row, 2)?,
            ordinal: column::ordinal(row, 3)?,
        },
        question: column::maybe_json(row, 4)?.ok_or_else(|| column::senseless(4))?,
        asked_ms: column::get(row, 5)?,
        state: column::one_of(row, 6, QuestionState::ALL, columns::question)?,
        answer: column::maybe_json(row, 7)?,
        answered_ms: column::get(row, 8)?,
    })
}
