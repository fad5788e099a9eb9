//! Queries for tasks, with what they wait for and what waits for them.
//!
//! An index finds the task numbers first, so that no list is scanned for a few of its tasks.

use posse_port::store::{Page, Ready, TaskFilter};
use posse_protocol::{AgentId, ListId, Name, Takes, Task, TaskId, TaskStatus};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{PgFailure, PgReader, QueryValues, column, nul};
use crate::columns;

/// All tasks of a list, including deleted ones.
pub(super) const ALL: &str = "SELECT task_json($1, $2, id)::text
    FROM (SELECT id FROM task WHERE realm = $1 AND team = $2 ORDER BY id OFFSET 0) ids";

/// One task.
const ONE: &str = "SELECT task_json($1, $2, $3)::text";

/// Unowned tasks that can be claimed.
const CLAIMABLE: &str = "status = 0 AND owner IS NULL AND waits = 0";

/// Those of them that are not marked.
const UNMARKED: &str = "role IS NULL AND status = 0 AND owner IS NULL AND waits = 0";

/// Tasks assigned to an agent that it could start.
const OWN: &str = "status = 0 AND owner IS NOT NULL AND waits = 0 AND owner_agent = $8";

/// Tasks assigned to any agent. The condition has the same text as in the index, so that the
/// planner uses it.
const ASSIGNED: &str = "status = 0 AND owner_agent IS NOT NULL AND waits = 0 AND id > 0";

/// Pending tasks that an owner of a given name lost.
const LOST: &str = "status = 0 AND lost_by = $7";

/// Types of the parameters: realm, list, beyond which number, limit, owner, roles, loser, the
/// agent that asks.
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

/// Returns the query for the tasks a filter selects; `None` if there cannot be any.
fn chosen(filter: &TaskFilter, page: &Page<TaskId>) -> Option<String> {
    // Each is one or several ranges of an index. The first is followed, the others filter its
    // rows.
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
        // As a literal, not as a parameter: only so does the planner use the partial index of the
        // status.
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
    let (than, way) = columns::rising(page);
    let range = |range: &String| {
        // The planner does not treat `role IS NULL` as an order; it descends the index only if
        // the order begins with the role.
        let role = match range == UNMARKED {
            true => format!("role {way}, "),
            false => String::new(),
        };
        format!(
            "(SELECT id FROM task WHERE realm = $1 AND team = $2 AND id {than} $3 AND {range}{rest}
              ORDER BY {role}id {way} LIMIT $4)"
        )
    };
    let ids = followed
        .iter()
        .map(range)
        .collect::<Vec<_>>()
        .join(" UNION ");
    Some(format!(
        "SELECT task_json($1, $2, id)::text
         FROM (SELECT id FROM ({ids}) every ORDER BY id {way} LIMIT $4) ids ORDER BY id"
    ))
}

/// Returns the conditions of what an agent could claim now: its own tasks, and unowned ones that
/// it takes; only those of `owner` if that is given. `None` if there cannot be any.
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

/// Returns a task, including a deleted one.
pub(in super::super) async fn task(
    reader: &PgReader<'_>,
    list: &ListId,
    id: TaskId,
) -> Result<Option<Task>, PgFailure> {
    // Numbers are signed in the table, so that no list has one beyond this.
    let Ok(id) = i64::try_from(id.0) else {
        return Ok(None);
    };
    let rows = reader
        .rows(ONE, &[&list.realm.uuid(), &team(list), &id])
        .await?;
    rows.first()
        .map_or(Ok(None), |row| column::maybe_json(row, 0))
}

/// Returns the tasks a filter selects, ordered by number.
pub(in super::super) async fn tasks(
    reader: &PgReader<'_>,
    list: &ListId,
    filter: &TaskFilter,
    page: &Page<TaskId>,
) -> Result<Vec<Task>, PgFailure> {
    let Some(sql) = chosen(filter, page) else {
        return Ok(Vec::new());
    };
    let (edge, limit) = (columns::edge(&page.by(|id| id.0)), column::most(page.limit));
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
        &realm, &team, &edge, &limit, &owner, &roles, &lost_by, &agent,
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
