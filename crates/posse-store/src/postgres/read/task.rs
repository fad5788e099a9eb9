//! Tasks, read whole: with what they wait for and what waits for them.
//!
//! Which ones is found by an index first, so that no list is looked through for a few of it.

use posse_port::store::{Ready, TaskFilter};
use posse_protocol::{AgentId, ListId, Name, Takes, Task, TaskId, TaskStatus};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{PgFailure, PgReader, QueryValues, column, nul};
use crate::columns;

/// All of a list, deleted ones too.
pub(super) const ALL: &str = "SELECT task_json($1, $2, id)::text
    FROM (SELECT id FROM task WHERE realm = $1 AND team = $2 ORDER BY id OFFSET 0) ids";

const ONE: &str = "SELECT task_json($1, $2, $3)::text";

/// Unowned tasks that can be claimed.
const CLAIMABLE: &str = "status = 0 AND owner IS NULL AND waits = 0";

/// Those of them that are not marked.
const UNMARKED: &str = "role IS NULL AND status = 0 AND owner IS NULL AND waits = 0";

/// Those that somebody is to do, and could begin.
const OWN: &str = "status = 0 AND owner IS NOT NULL AND waits = 0 AND owner_agent = $8";

/// Those that any agent is to do. As the index of them spells it.
const ASSIGNED: &str = "status = 0 AND owner_agent IS NOT NULL AND waits = 0 AND id > 0";

/// Pending ones that somebody of a name has lost.
const LOST: &str = "status = 0 AND lost_by = $7";

/// What may be asked with: the realm, the list, after which number, at most how many, the owner, the roles, who has
/// lost it, who looks.
const ASKED: [Type; 8] = [
    Type::UUID,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::UUID,
    Type::TEXT_ARRAY,
    Type::TEXT,
    Type::UUID,
];

/// Returns the query for the tasks that a filter means; none if there can be none.
fn chosen(filter: &TaskFilter) -> Option<String> {
    // Each is a range of an index, or several. The first is followed, the others are looked at on the way.
    let mut narrow = Vec::new();
    if let Some(ready) = &filter.ready {
        narrow.push(ready_for(ready, filter.owner)?);
    }
    narrow.extend(filter.assigned.then(|| vec![ASSIGNED.to_owned()]));
    narrow.extend(filter.lost_by.as_ref().map(|_| vec![LOST.to_owned()]));
    if !narrow.is_empty()
        && filter
            .status
            .is_some_and(|status| status != TaskStatus::Pending)
    {
        return None;
    }
    let mut narrow = narrow.into_iter();
    let followed = narrow.next().unwrap_or_else(|| {
        // Spelt out, so that an index of those in progress is found.
        let status = filter
            .status
            .map(|status| format!("status <> 3 AND status = {}", columns::status(status)));
        vec![status.unwrap_or_else(|| "status <> 3".into())]
    });
    let mut rest: String = narrow
        .map(|ranges| format!(" AND ({})", ranges.join(" OR ")))
        .collect();
    rest.push_str(if filter.owner.is_some() {
        " AND owner_agent = $5"
    } else {
        ""
    });
    let range = |range: &String| {
        // The planner takes a null for no order: it goes down the index only if the order begins with it.
        let order = if range == UNMARKED { "role, id" } else { "id" };
        format!(
            "(SELECT id FROM task WHERE realm = $1 AND team = $2 AND id > $3 AND {range}{rest} ORDER BY {order} LIMIT $4)"
        )
    };
    let ids = followed
        .iter()
        .map(range)
        .collect::<Vec<_>>()
        .join(" UNION ");
    Some(format!(
        "SELECT task_json($1, $2, id)::text FROM (SELECT id FROM ({ids}) every ORDER BY id LIMIT $4) ids ORDER BY id"
    ))
}

/// Returns the conditions of what an agent could claim now: its own tasks, and unowned ones that it takes; only
/// those of `owner` if that is given. None if there can be none.
fn ready_for(ready: &Ready, owner: Option<AgentId>) -> Option<Vec<String>> {
    if owner.is_some() {
        return (owner == ready.agent).then(|| vec![OWN.to_owned()]);
    }
    let mut ranges: Vec<String> = ready.agent.iter().map(|_| OWN.to_owned()).collect();
    match &ready.takes {
        Takes::Any => ranges.push(CLAIMABLE.to_owned()),
        Takes::Only { unmarked, roles } => {
            ranges.extend(unmarked.then(|| UNMARKED.to_owned()));
            ranges.extend((1..=roles.len()).map(|nth| format!("role = $6[{nth}] AND {CLAIMABLE}")));
        }
    }
    (!ranges.is_empty()).then_some(ranges)
}

/// Returns a task, also a deleted one.
pub(in super::super) async fn task(
    reader: &PgReader<'_>,
    list: &ListId,
    id: TaskId,
) -> Result<Option<Task>, PgFailure> {
    // No list has counted as far as this.
    let Ok(id) = i64::try_from(id.0) else {
        return Ok(None);
    };
    let rows = reader
        .rows(ONE, &[&list.realm.uuid(), &team(list), &id])
        .await?;
    rows.first()
        .map_or(Ok(None), |row| column::maybe_json(row, 0))
}

/// Returns the tasks that a filter means, in the order of their numbers.
pub(in super::super) async fn tasks(
    reader: &PgReader<'_>,
    list: &ListId,
    filter: &TaskFilter,
    limit: usize,
) -> Result<Vec<Task>, PgFailure> {
    let Some(sql) = chosen(filter) else {
        return Ok(Vec::new());
    };
    let (after, limit) = (column::most(filter.after), column::most(limit));
    let (owner, agent) = (
        filter.owner,
        filter.ready.as_ref().and_then(|ready| ready.agent),
    );
    let (owner, agent) = (owner.map(AgentId::uuid), agent.map(AgentId::uuid));
    let takes = filter.ready.as_ref().map(|ready| &ready.takes);
    let roles = match takes {
        Some(Takes::Only { roles, .. }) => roles.iter().map(|role| nul::hide_text(role)).collect(),
        _ => Vec::new(),
    };
    let lost_by = filter.lost_by.as_deref().map(nul::hide_text);
    let (realm, team) = (list.realm.uuid(), team(list));
    let about: &QueryValues<'_> = &[
        &realm, &team, &after, &limit, &owner, &roles, &lost_by, &agent,
    ];
    reader
        .typed_rows(&sql, &ASKED, about)
        .await?
        .iter()
        .map(row_to_task)
        .collect()
}

/// Returns the team's part of a list's key; empty for the session's own list.
fn team(list: &ListId) -> &str {
    list.team.as_ref().map_or("", Name::as_str)
}

/// Returns the task of a row.
pub(super) fn row_to_task(row: &Row) -> Result<Task, PgFailure> {
    column::maybe_json(row, 0)?.ok_or_else(|| column::senseless(0))
}
