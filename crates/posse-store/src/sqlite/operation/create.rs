//! Creates a task.

use std::collections::BTreeSet;

use posse_port::store::{Done, NewTask, Refusal};
use posse_protocol::{Name, TaskId};
use rusqlite::params;

use super::{OperationResult, WriteTransaction, column, fits_task};
use crate::sqlite::free;

/// Creates a task. Returns its number.
pub(super) fn create_task(
    tx: &mut WriteTransaction<'_>,
    team: Option<&Name>,
    task: &NewTask,
) -> OperationResult {
    let list = tx.list(team)?;
    let metadata = column::json(&task.metadata)?;
    let [role, check] =
        [&task.role, &task.check].map(|it| it.as_deref().filter(|it| !it.is_empty()));
    let texts = [
        Some(&*task.subject),
        Some(&*task.description),
        task.active_form.as_deref(),
        role,
        check,
    ];
    fits_task(texts, &task.metadata)?;
    let needs: BTreeSet<TaskId> = task.blocked_by.iter().copied().collect();
    let mut waits = 0_i64;
    for id in &needs {
        let status = list.status(*id)?.ok_or(Refusal::NoSuchTask { id: *id })?;
        waits += i64::from(!status.is_settled());
    }
    // Counted beside the tasks: the number of a deleted task is not given again.
    let sql = "INSERT INTO list (realm, team, last, changed) VALUES (?1, ?2, 1, 0)
               ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let id: i64 = statement.query_row(params![list.realm, list.team], |row| row.get(0))?;
    let sql =
        "INSERT INTO task (realm, team, id, status, waits, version, created_ms, updated_ms, subject,
                   active_form, metadata, description, role, check_command)
               VALUES (?1, ?2, ?3, 0, ?4, 1, ?5, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    tx.connection.prepare_cached(sql)?.execute(params![
        list.realm,
        list.team,
        id,
        waits,
        tx.at_ms,
        task.subject,
        task.active_form,
        metadata,
        task.description,
        role,
        check,
    ])?;
    let sql = "INSERT INTO dependency (realm, team, task, needs) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = tx.connection.prepare_cached(sql)?;
    for needs in needs {
        statement.execute(params![list.realm, list.team, id, column::bits(needs.0)])?;
    }
    if waits == 0 {
        free::claimable(tx.connection, tx.realm, team.cloned(), tx.changes)?;
    }
    Ok(Done::TaskCreated(TaskId(column::from_bits(id))))
}
