//! Tasks in lists and for programs.

use posse_protocol::{Task, TaskId};
use serde_json::{Value, json};

use crate::output::table::{Column, needed, spare, table};
use crate::output::tame;
use crate::output::time::moment;

const COLUMNS: [Column; 6] = [
    needed("ID").right(),
    needed("STATUS"),
    spare("OWNER", 1),
    spare("ROLE", 2),
    needed("WAITS FOR"),
    needed("SUBJECT"),
];

/// Returns a task for programs.
pub(crate) fn object(task: &Task) -> Value {
    json!({
        "id": task.id, "subject": task.subject, "description": task.description,
        "active_form": task.active_form, "status": task.status,
        "owner": task.owner.as_ref().map(|owner| &owner.name), "lost_by": task.lost_by,
        "blocked_by": task.blocked_by, "waits_for": task.waits_for, "blocks": task.blocks,
        "created_at": moment(task.created_ms), "updated_at": moment(task.updated_ms),
        "role": task.role, "check": task.check, "metadata": task.metadata, "version": task.version,
    })
}

/// Returns task numbers for people.
pub(crate) fn numbers(tasks: &[TaskId]) -> String {
    tasks
        .iter()
        .map(TaskId::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns tasks as a table, with the open tasks that each waits for. Roles are shown only if
/// there are any.
pub(crate) fn rows(tasks: &[Task], columns: Option<usize>) -> String {
    let roles = tasks.iter().any(|task| task.role.is_some());
    let without = |at: usize| roles || at != ROLE;
    let kept: Vec<Column> = (0..)
        .zip(COLUMNS)
        .filter(|(at, _)| without(*at))
        .map(|(_, it)| it)
        .collect();
    let cells = |task| {
        (0..)
            .zip(row(task))
            .filter(|(at, _)| without(*at))
            .map(|(_, it)| it)
            .collect()
    };
    table(
        &kept,
        &tasks.iter().map(cells).collect::<Vec<Vec<_>>>(),
        columns,
    )
}

/// Index of the column with the role.
const ROLE: usize = 3;

fn row(task: &Task) -> Vec<String> {
    let owner = match (&task.owner, &task.lost_by) {
        (Some(owner), _) => tame(&owner.name),
        (None, Some(lost)) => format!("(was {})", tame(lost)),
        (None, None) => "–".into(),
    };
    let role = task.role.as_deref().map_or_else(|| "–".into(), tame);
    let waits = if task.waits_for.is_empty() {
        "–".into()
    } else {
        numbers(&task.waits_for)
    };
    let subject = tame(task.subject.lines().next().unwrap_or_default());
    vec![
        task.id.to_string(),
        task.status.to_string(),
        owner,
        role,
        waits,
        subject,
    ]
}
