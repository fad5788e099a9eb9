//! Claims a task: exactly one of several claimers gets it, because the file has one writer at a
//! time.

use posse_port::store::{Done, Page, Refusal};
use posse_protocol::{Name, Owner, Takes, Task, TaskId, TaskStatus};
use rusqlite::params;
use uuid::Uuid;

use super::{OperationResult, SqliteFailure, WriteTransaction, column};
use crate::sqlite::list::{ListReader, TaskOwner};
use crate::sqlite::{free, host_rows};

/// Finds a task of a list that an agent of a host is doing.
pub(in crate::sqlite) const DOES: &str = "SELECT 1
    FROM agent INDEXED BY agent_host CROSS JOIN task INDEXED BY task_owner
    WHERE agent.host = ?1 AND agent.realm = ?2 AND task.realm = agent.realm AND owner_agent = agent.id
        AND status = 1 AND task.team = ?3";

/// Claims one task for the actor. Returns the task.
pub(super) fn claim(
    tx: &mut WriteTransaction<'_>,
    team: Option<&Name>,
    id: TaskId,
) -> OperationResult {
    let list = tx.list(team)?;
    let me = tx.me(list.team)?;
    let find = || {
        list.task(id)
            .map(|found| found.filter(|task| task.status != TaskStatus::Deleted))
    };
    let mut task = find()?.ok_or(Refusal::NoSuchTask { id })?;
    if task.status == TaskStatus::Completed {
        return Err(Refusal::AlreadyCompleted { id }.into());
    }
    if let Some(host) = doer(tx, &task, &me)?
        && tx.gone(host)?
    {
        free::host(tx.connection, host, tx.changes)?;
        task = find()?.ok_or(Refusal::NoSuchTask { id })?;
    }
    match &task.owner {
        Some(owner) if !same(owner, &me) => Err(Refusal::AlreadyClaimed {
            id,
            by: owner.name.clone(),
        }
        .into()),
        Some(_) if task.status == TaskStatus::InProgress => Ok(Done::Claimed(Box::new(task))),
        _ if !task.waits_for.is_empty() => Err(Refusal::Blocked {
            id,
            by: task.waits_for,
        }
        .into()),
        _ => grant(tx, &list, task, me),
    }
}

/// Claims the next task that the actor may take. Returns the task.
pub(super) fn claim_next(
    tx: &mut WriteTransaction<'_>,
    team: Option<&Name>,
    takes: &Takes,
) -> OperationResult {
    let list = tx.list(team)?;
    let me = tx.actor.map_or(TaskOwner::Person, TaskOwner::Agent);
    let next = || {
        list.ready(me, takes, &Page::first(1))
            .map(|ids| ids.first().copied())
    };
    let id = match next()? {
        Some(id) => Some(id),
        None if free_doers(tx, &list)? => next()?,
        None => None,
    };
    let task = match id {
        Some(id) => list.task(id)?,
        None => None,
    };
    let task = task.ok_or(Refusal::NothingToClaim)?;
    let me = tx.me(list.team)?;
    grant(tx, &list, task, me)
}

/// Makes the claimer the owner of a task. Returns the task.
fn grant(
    tx: &WriteTransaction<'_>,
    list: &ListReader<'_>,
    mut task: Task,
    me: Owner,
) -> OperationResult {
    let sql = "UPDATE task SET status = 1, owner = ?4, owner_agent = ?5, lost_by = NULL,
                   version = version + 1, updated_ms = ?6
               WHERE realm = ?1 AND team = ?2 AND id = ?3";
    let agent = me.agent.map(|agent| agent.uuid().into_bytes());
    let (id, mut statement) = (column::bits(task.id.0), tx.connection.prepare_cached(sql)?);
    statement.execute(params![list.realm, list.team, id, me.name, agent, tx.at_ms])?;
    (task.status, task.owner, task.lost_by) = (TaskStatus::InProgress, Some(me), None);
    (task.version, task.updated_ms) = (task.version + 1, tx.at_ms);
    Ok(Done::Claimed(Box::new(task)))
}

/// Returns the host of another agent that is doing the task.
fn doer(tx: &WriteTransaction<'_>, task: &Task, me: &Owner) -> Result<Option<Uuid>, SqliteFailure> {
    let doing = task.status == TaskStatus::InProgress;
    let owner = task
        .owner
        .as_ref()
        .filter(|owner| doing && !same(owner, me));
    match owner.and_then(|owner| owner.agent) {
        Some(agent) => tx.host(agent),
        None => Ok(None),
    }
}

/// Releases the tasks of a list that hosts which are gone had. Returns true if there were any.
/// Asking every host is cheap: there are few, and one that is gone is rare.
fn free_doers(tx: &mut WriteTransaction<'_>, list: &ListReader<'_>) -> Result<bool, SqliteFailure> {
    let mut any = false;
    for host in host_rows::hosts(tx.connection)? {
        let key = params![host.as_bytes(), list.realm, list.team];
        if tx.connection.prepare_cached(DOES)?.exists(key)? && tx.gone(host)? {
            free::host(tx.connection, host, tx.changes)?;
            any = true;
        }
    }
    Ok(any)
}

/// Returns true if both are the same owner: agents are compared by id, people by name.
fn same(a: &Owner, b: &Owner) -> bool {
    a.agent == b.agent && (a.agent.is_some() || a.name == b.name)
}
