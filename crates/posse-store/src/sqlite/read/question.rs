//! Questions to people.

use posse_port::store::{CallKey, Page, QuestionFilter, QuestionKey, QuestionRecord};
use posse_protocol::{AgentId, RealmId};
use rusqlite::{Row, params};

use super::{SqliteFailure, SqliteReader, column};
use crate::columns::{ids_with, rising};

/// A question's columns, in the order of [`question`].
const QUESTION: &str =
    "SELECT realm, agent, call_seq, call_ordinal, question, asked_ms, state, answer,
    answered_ms FROM question";

/// Returns which questions a filter means, and in which order: the realm is parameter 1, the agent 2,
/// the first id 3 and the last 4, the time and the id of the row before the page 5 and 6, the limit 7.
pub(in super::super) fn questions(filter: &QuestionFilter, page: &Page<QuestionKey>) -> String {
    let index = match filter {
        QuestionFilter {
            id_prefix: Some(_), ..
        } => "question_id",
        QuestionFilter {
            realm: Some(_),
            agent: Some(_),
            ..
        } => "question_agent",
        QuestionFilter {
            realm: Some(_),
            open: true,
            ..
        } => "question_open_in",
        QuestionFilter { realm: Some(_), .. } => "question_asked",
        QuestionFilter { open: true, .. } => "question_open",
        _ => "question_id",
    };
    let given = |given: bool, yes: &'static str, no: &'static str| if given { yes } else { no };
    let realm = given(filter.realm.is_some(), "realm = ?1", "?1 IS NULL");
    let agent = given(
        filter.agent.is_some(),
        "agent = ?2 AND state < 2",
        "?2 IS NULL",
    );
    // The plus keeps the index of ids out of it, where every id would do.
    let id = given(filter.id_prefix.is_some(), "id", "+id");
    let open = given(filter.open, "state = 0", "true");
    let (than, way) = rising(page);
    let beyond = match page.from {
        Some(_) => format!("(asked_ms, id) {than} (?5, ?6)"),
        None => "?5 IS NULL AND ?6 IS NULL".into(),
    };
    format!(
        "INDEXED BY {index} WHERE {realm} AND {agent} AND {open} AND {id} BETWEEN ?3 AND ?4
             AND {beyond}
         ORDER BY asked_ms {way}, id {way} LIMIT ?7"
    )
}

/// Returns questions, oldest first.
pub(in super::super) fn list(
    reader: &SqliteReader<'_>,
    filter: &QuestionFilter,
    page: &Page<QuestionKey>,
) -> Result<Vec<QuestionRecord>, SqliteFailure> {
    let Some((first, last)) = ids_with(filter.id_prefix.as_deref().unwrap_or_default()) else {
        return Ok(Vec::new());
    };
    let sql = format!("{QUESTION} {}", questions(filter, page));
    let mut statement = reader.snapshot.prepare_cached(&sql)?;
    let realm = filter.realm.map(|realm| realm.uuid().into_bytes());
    let agent = filter.agent.map(|agent| agent.uuid().into_bytes());
    let asked_ms = page.from.map(|from| from.asked_ms);
    let from = page.from.map(|from| from.id.uuid().into_bytes());
    let limit = column::most(page.limit);
    let values = params![
        realm,
        agent,
        first.as_bytes(),
        last.as_bytes(),
        asked_ms,
        from,
        limit
    ];
    let rows = statement.query_map(values, question)?;
    let mut found = rows.collect::<Result<Vec<_>, _>>()?;
    if page.backwards {
        found.reverse();
    }
    Ok(found)
}

/// Returns the questions that an agent has not finished with.
pub(super) fn own(
    reader: &SqliteReader<'_>,
    realm: RealmId,
    agent: AgentId,
) -> Result<Vec<QuestionRecord>, SqliteFailure> {
    let filter = QuestionFilter {
        realm: Some(realm),
        agent: Some(agent),
        ..QuestionFilter::default()
    };
    list(reader, &filter, &Page::all())
}

fn question(row: &Row<'_>) -> rusqlite::Result<QuestionRecord> {
    Ok(QuestionRecord {
        realm: column::id(row, 0)?.into(),
        agent: column::id(row, 1)?.into(),
        call: CallKey {
            seq: column::from_bits(row.get(2)?),
            ordinal: row.get(3)?,
        },
        question: column::maybe_json(row, 4)?.ok_or_else(|| column::senseless(4))?,
        asked_ms: row.get(5)?,
        state: column::question_state(row, 6)?,
        answer: column::maybe_json(row, 7)?,
        answered_ms: row.get(8)?,
    })
}
