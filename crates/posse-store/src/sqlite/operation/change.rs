//! Changes a task: what it becomes is decided first, then written with all that follows from it.

use std::collections::BTreeSet;

use posse_port::store::{Done, Refusal, TaskChange};
use posse_protocol::{AgentId, Name, Owner, Task, TaskId, TaskStatus};
use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::{
    OperationError, OperationResult, SqliteFailure, USER, WriteTransaction, column, fits_task,
};
use crate::sqlite::free;
use crate::sqlite::list::{ListReader, number};

/// Changes a task. Returns its new version and the tasks that became claimable.
pub(super) fn update_task(
    tx: &mut WriteTransaction<'_>,
    team: Option<&Name>,
    id: TaskId,
    expect: Option<u64>,
    change: &TaskChange,
) -> OperationResult {
    let list = tx.list(team)?;
    let before = list
        .task(id)?
        .filter(|task| task.status != TaskStatus::Deleted);
    let before = before.ok_or(Refusal::NoSuchTask { id })?;
    let version = before.version;
    if expect.is_some_and(|expect| expect != version) {
        return Err(Refusal::Changed { version }.into());
    }
    let after = changed(tx, &list, &before, change)?;
    if after == before {
        return Ok(Done::TaskUpdated {
            version,
            freed: Vec::new(),
        });
    }
    rewrite(tx, &list, &before, &after)?;
    let (mut freed, told) = dependants(&list, &before, &after)?;
    if is_claimable(&after) && !is_claimable(&before) {
        freed.insert(id);
    }
    let for_others = before.owner != after.owner || before.role != after.role;
    let ready = is_ready(&after) && (!is_ready(&before) || for_others);
    if ready || told {
        free::claimable(tx.connection, tx.realm, team.cloned(), tx.changes)?;
    }
    Ok(Done::TaskUpdated {
        version: version + 1,
        freed: freed.into_iter().collect(),
    })
}

/// Returns the task as it is to be, with its version and time unchanged.
fn changed(
    tx: &WriteTransaction<'_>,
    list: &ListReader<'_>,
    before: &Task,
    change: &TaskChange,
) -> Result<Task, OperationError> {
    // What a running task says may be changed by anyone; who does it and how far it is may not.
    let touched =
        change.owner.is_some() || change.status.is_some_and(|status| status != before.status);
    if touched && before.status == TaskStatus::InProgress {
        must_be_in_charge(tx, list, before)?;
    }
    let check = before.check.as_deref().unwrap_or_default();
    if change.check.as_ref().is_some_and(|new| new != check) {
        may_change_check(tx, list, before)?;
    }
    let mut after = before.clone();
    match &change.owner {
        None => {}
        Some(None) => after.owner = None,
        Some(Some(name)) => after.owner = Some(owner(tx, list, name)?),
    }
    if after.owner.is_some() && after.owner != before.owner {
        after.lost_by = None;
    }
    after.status = match change.status {
        Some(status) => status,
        None if after.owner.is_none() && before.status == TaskStatus::InProgress => {
            TaskStatus::Pending
        }
        None => before.status,
    };
    if after.status == TaskStatus::InProgress && after.owner.is_none() {
        after.owner = Some(tx.me(list.team)?);
    }
    if after.status != TaskStatus::Pending && before.status == TaskStatus::Pending {
        after.lost_by = None;
    }
    depend(list, &mut after, change)?;
    let begun = before.status != TaskStatus::InProgress || after.owner != before.owner;
    if begun && after.status == TaskStatus::InProgress {
        must_be_doable(tx, &after)?;
    }
    describe(&mut after, change);
    if after.status == TaskStatus::Completed && before.status != TaskStatus::Completed {
        must_have_passed(tx, [before, &after], change)?;
    }
    let texts = [&after.active_form, &after.role, &after.check].map(Option::as_deref);
    let texts = texts
        .into_iter()
        .chain([Some(&*after.subject), Some(&*after.description)]);
    fits_task(texts, &after.metadata)?;
    Ok(after)
}

/// Refuses an agent that has not seen both checks pass: the task's, and the one it replaces that
/// with.
fn must_have_passed(
    tx: &WriteTransaction<'_>,
    versions: [&Task; 2],
    change: &TaskChange,
) -> Result<(), OperationError> {
    for task in versions.into_iter().filter(|_| tx.actor.is_some()) {
        if let Some(check) = task
            .check
            .clone()
            .filter(|check| change.passed.as_ref() != Some(check))
        {
            return Err(Refusal::Unchecked { id: task.id, check }.into());
        }
    }
    Ok(())
}

/// Refuses a task that could not be claimed: it is blocked, or its owner is an agent that is not
/// running.
fn must_be_doable(tx: &WriteTransaction<'_>, task: &Task) -> Result<(), OperationError> {
    if !task.waits_for.is_empty() {
        return Err(Refusal::Blocked {
            id: task.id,
            by: task.waits_for.clone(),
        }
        .into());
    }
    let Some(Owner {
        agent: Some(agent),
        name,
    }) = &task.owner
    else {
        return Ok(());
    };
    match tx.host(*agent)? {
        Some(host) if !tx.gone(host)? => Ok(()),
        _ => Err(Refusal::NotRunning { name: name.clone() }.into()),
    }
}

/// Returns the owner with this name: the person, a member of the team, or an agent by its path (the
/// youngest of several).
fn owner(
    tx: &WriteTransaction<'_>,
    list: &ListReader<'_>,
    name: &str,
) -> Result<Owner, OperationError> {
    if name == USER {
        return Ok(Owner {
            agent: None,
            name: USER.into(),
        });
    }
    let agent = if list.team.is_empty() {
        let sql = "SELECT id FROM agent WHERE realm = ?1 AND path = ?2 ORDER BY id DESC LIMIT 1";
        let mut statement = tx.connection.prepare_cached(sql)?;
        let found = statement.query_row(params![list.realm, name], |row| column::id(row, 0));
        found.optional()?.map(AgentId::from)
    } else {
        tx.member(list.team, name)?
    };
    let agent = agent.ok_or_else(|| Refusal::NoSuchRecipient {
        to: name.to_owned(),
    })?;
    // The lead has a name of its own as well.
    let name = match name == Name::LEAD {
        true => tx
            .name_in(list.team, agent)?
            .unwrap_or_else(|| name.to_owned()),
        false => name.to_owned(),
    };
    Ok(Owner {
        agent: Some(agent),
        name,
    })
}

/// Refuses an agent that neither owns the task nor leads the team.
fn must_be_in_charge(
    tx: &WriteTransaction<'_>,
    list: &ListReader<'_>,
    task: &Task,
) -> Result<(), OperationError> {
    let (Some(me), Some(owner)) = (tx.actor, &task.owner) else {
        return Ok(());
    };
    if owner.agent == Some(me) {
        return Ok(());
    }
    match tx.lead(list.team)? == Some(me) {
        true => Ok(()),
        false => Err(Refusal::AlreadyClaimed {
            id: task.id,
            by: owner.name.clone(),
        }
        .into()),
    }
}

/// Refuses an agent that neither leads the team nor is the session's first agent, unless it adds a
/// check to a task that has not been started.
fn may_change_check(
    tx: &WriteTransaction<'_>,
    list: &ListReader<'_>,
    task: &Task,
) -> Result<(), OperationError> {
    let Some(me) = tx.actor else { return Ok(()) };
    if task.check.is_none() && task.status == TaskStatus::Pending {
        return Ok(());
    }
    let decides = match list.team {
        "" => {
            let sql = "SELECT 1 FROM agent WHERE realm = ?1 AND id = ?2 AND parent IS NULL";
            tx.connection
                .prepare_cached(sql)?
                .exists([list.realm, me.uuid().into_bytes()])?
        }
        team => tx.lead(team)? == Some(me),
    };
    if decides {
        Ok(())
    } else {
        Err(Refusal::CheckStands { id: task.id }.into())
    }
}

/// Writes a task's own record, and its dependencies.
fn rewrite(
    tx: &WriteTransaction<'_>,
    list: &ListReader<'_>,
    before: &Task,
    after: &Task,
) -> Result<(), SqliteFailure> {
    let id = column::bits(after.id.0);
    let sql = "UPDATE task SET status = ?4, waits = ?5, owner = ?6, owner_agent = ?7, lost_by = ?8,
                   version = version + 1, updated_ms = ?9, subject = ?10, active_form = ?11,
                   metadata = ?12, description = ?13, role = ?14, check_command = ?15
               WHERE realm = ?1 AND team = ?2 AND id = ?3";
    let agent = after.owner.as_ref().and_then(|owner| owner.agent);
    tx.connection.prepare_cached(sql)?.execute(params![
        list.realm,
        list.team,
        id,
        column::status(after.status),
        after.waits_for.len() as i64,
        after.owner.as_ref().map(|owner| &owner.name),
        agent.map(|agent| agent.uuid().into_bytes()),
        after.lost_by,
        tx.at_ms,
        after.subject,
        after.active_form,
        column::json(&after.metadata)?,
        after.description,
        after.role,
        after.check,
    ])?;
    let run = |sql, needs: &TaskId| {
        let key = params![list.realm, list.team, id, column::bits(needs.0)];
        tx.connection.prepare_cached(sql)?.execute(key)
    };
    for needs in before
        .blocked_by
        .iter()
        .filter(|it| !after.blocked_by.contains(it))
    {
        run(
            "DELETE FROM dependency WHERE realm = ?1 AND team = ?2 AND task = ?3 AND needs = ?4",
            needs,
        )?;
    }
    for needs in after
        .blocked_by
        .iter()
        .filter(|it| !before.blocked_by.contains(it))
    {
        run(
            "INSERT INTO dependency (realm, team, task, needs) VALUES (?1, ?2, ?3, ?4)",
            needs,
        )?;
    }
    Ok(())
}

/// Returns true if the task can be started: by its owner, or by anyone if it has none.
fn is_ready(task: &Task) -> bool {
    task.status == TaskStatus::Pending && task.waits_for.is_empty()
}

/// Returns true if anyone can claim the task.
fn is_claimable(task: &Task) -> bool {
    is_ready(task) && task.owner.is_none()
}

/// Changes a task's texts.
fn describe(task: &mut Task, change: &TaskChange) {
    if let Some(subject) = &change.subject {
        task.subject.clone_from(subject);
    }
    if let Some(description) = &change.description {
        task.description.clone_from(description);
    }
    if let Some(form) = &change.active_form {
        task.active_form = Some(form.clone()).filter(|form| !form.is_empty());
    }
    if let Some(role) = &change.role {
        task.role = Some(role.clone()).filter(|role| !role.is_empty());
    }
    if let Some(check) = &change.check {
        task.check = Some(check.clone()).filter(|check| !check.is_empty());
    }
    for (key, value) in &change.metadata {
        match value {
            Value::Null => task.metadata.shift_remove(key),
            _ => task.metadata.insert(key.clone(), value.clone()),
        };
    }
}

/// Changes the dependencies of a task. A task named both to add and to remove is removed.
fn depend(
    list: &ListReader<'_>,
    task: &mut Task,
    change: &TaskChange,
) -> Result<(), OperationError> {
    let mut needs: BTreeSet<TaskId> = task.blocked_by.iter().copied().collect();
    let mut open: BTreeSet<TaskId> = task.waits_for.iter().copied().collect();
    for id in &change.block_on {
        let status = list.status(*id)?.ok_or(Refusal::NoSuchTask { id: *id })?;
        if needs.insert(*id) && !status.is_settled() {
            open.insert(*id);
        }
    }
    let mut seen = BTreeSet::new();
    for id in &change.block_on {
        if let Some(mut through) = chain(list, *id, task.id, &mut seen)? {
            through.insert(0, task.id);
            return Err(Refusal::Cycle { through }.into());
        }
    }
    for id in &change.unblock_from {
        needs.remove(id);
        open.remove(id);
    }
    (task.blocked_by, task.waits_for) = (needs.into_iter().collect(), open.into_iter().collect());
    Ok(())
}

/// Returns the chain of tasks that starts at `from` and ends with a task that needs `to`, if there
/// is one. Tasks in `seen` are known not to lead there.
fn chain(
    list: &ListReader<'_>,
    from: TaskId,
    to: TaskId,
    seen: &mut BTreeSet<TaskId>,
) -> Result<Option<Vec<TaskId>>, SqliteFailure> {
    if from == to {
        return Ok(Some(Vec::new()));
    }
    // An explicit stack, since a chain may be as long as the list.
    let mut way = Vec::new();
    if seen.insert(from) {
        way.push((from, list.needs(from)?.into_iter()));
    }
    while let Some((_, needs)) = way.last_mut() {
        match needs.next() {
            Some(next) if next == to => {
                return Ok(Some(way.into_iter().map(|(id, _)| id).collect()));
            }
            Some(next) if seen.insert(next) => way.push((next, list.needs(next)?.into_iter())),
            Some(_) => {}
            None => drop(way.pop()),
        }
    }
    Ok(None)
}

/// Updates the tasks that depend on this one. Returns those that became claimable, and true if any
/// of them can be started.
fn dependants(
    list: &ListReader<'_>,
    before: &Task,
    after: &Task,
) -> Result<(BTreeSet<TaskId>, bool), SqliteFailure> {
    let more = match (before.status.is_settled(), after.status.is_settled()) {
        (false, true) => -1,
        (true, false) => 1,
        _ => return Ok((BTreeSet::new(), false)),
    };
    let sql = "UPDATE task SET waits = waits + ?4 WHERE realm = ?1 AND team = ?2 AND id IN
                   (SELECT task FROM dependency WHERE realm = ?1 AND team = ?2 AND needs = ?3)
               RETURNING id, waits = 0 AND status = 0, owner IS NULL";
    let mut statement = list.connection.prepare_cached(sql)?;
    let key = params![list.realm, list.team, column::bits(after.id.0), more];
    let mut rows = statement.query(key)?;
    let (mut freed, mut ready) = (BTreeSet::new(), false);
    while let Some(row) = rows.next()? {
        if more < 0 && row.get(1)? {
            ready = true;
            if row.get(2)? {
                freed.insert(number(row, 0)?);
            }
        }
    }
    Ok((freed, ready))
}
