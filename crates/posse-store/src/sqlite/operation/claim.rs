//! Claims a task: of any number of claimers one gets it, because one writer at a time is in the file.

use std::collections::BTreeSet;

use posse_protocol::{Name, Owner, Task, TaskId, TaskStatus};
use posse_runtime::port::store::{Done, Refusal};
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::{Acting, Failure, Outcome, column};
use crate::sqlite::free;
use crate::sqlite::list::{List, number};

/// The lowest number that can be claimed, however many tasks there are.
pub(in crate::sqlite) const NEXT: &str = "SELECT id FROM task INDEXED BY task_ready
    WHERE realm = ?1 AND team = ?2 AND status = 0 AND owner IS NULL AND waits = 0 ORDER BY id LIMIT 1";

/// The hosts of all who do tasks of a list.
pub(in crate::sqlite) const DOERS: &str = "SELECT DISTINCT agent.host
    FROM task INDEXED BY task_owner CROSS JOIN agent
    WHERE task.realm = ?1 AND task.team = ?2 AND status = 1 AND owner_agent IS NOT NULL
        AND agent.realm = task.realm AND agent.id = owner_agent AND agent.host IS NOT NULL";

impl Acting<'_> {
    pub(super) fn claim(&mut self, team: Option<&Name>, id: TaskId) -> Outcome {
        let list = self.list(team)?;
        let me = self.me(list.team)?;
        let find = || list.task(id).map(|found| found.filter(|task| task.status != TaskStatus::Deleted));
        let mut task = find()?.ok_or(Refusal::NoSuchTask { id })?;
        if task.status == TaskStatus::Completed {
            return Err(Refusal::AlreadyCompleted { id }.into());
        }
        if let Some(host) = self.doer(&task, &me)?
            && free::gone(self.place, host)?
        {
            free::host(self.connection, host, self.news)?;
            task = find()?.ok_or(Refusal::NoSuchTask { id })?;
        }
        match &task.owner {
            Some(owner) if !same(owner, &me) => {
                Err(Refusal::AlreadyClaimed { id, by: owner.name.clone() }.into())
            }
            Some(_) if task.status == TaskStatus::InProgress => Ok(Done::Claimed(Box::new(task))),
            _ if !task.waits_for.is_empty() => Err(Refusal::Blocked { id, by: task.waits_for }.into()),
            _ => self.grant(&list, task, me),
        }
    }

    pub(super) fn claim_next(&mut self, team: Option<&Name>) -> Outcome {
        let list = self.list(team)?;
        let id = match next(&list)? {
            Some(id) => Some(id),
            None if self.free_doers(&list)? => next(&list)?,
            None => None,
        };
        let task = match id {
            Some(id) => list.task(id)?,
            None => None,
        };
        let task = task.ok_or(Refusal::NothingToClaim)?;
        let me = self.me(list.team)?;
        self.grant(&list, task, me)
    }

    /// Makes a task the claimer's.
    fn grant(&self, list: &List<'_>, mut task: Task, me: Owner) -> Outcome {
        let sql = "UPDATE task SET status = 1, owner = ?4, owner_agent = ?5, lost_by = NULL,
                       version = version + 1, updated_ms = ?6
                   WHERE realm = ?1 AND team = ?2 AND id = ?3";
        let agent = me.agent.map(|agent| agent.uuid().into_bytes());
        let (id, mut statement) = (column::bits(task.id.0), self.connection.prepare_cached(sql)?);
        statement.execute(params![list.realm, list.team, id, me.name, agent, self.at_ms])?;
        (task.status, task.owner, task.lost_by) = (TaskStatus::InProgress, Some(me), None);
        (task.version, task.updated_ms) = (task.version + 1, self.at_ms);
        Ok(Done::Claimed(Box::new(task)))
    }

    /// The host of another agent that does the task.
    fn doer(&self, task: &Task, me: &Owner) -> Result<Option<Uuid>, Failure> {
        let owner = task.owner.as_ref().filter(|owner| !same(owner, me));
        let Some(agent) = owner.and_then(|owner| owner.agent) else { return Ok(None) };
        let sql = "SELECT host FROM agent WHERE realm = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement.query_row(key, |row| column::maybe_id(row, 0)).optional()?.flatten())
    }

    /// Sets free what hosts that are gone had of a list; says whether there was any.
    fn free_doers(&mut self, list: &List<'_>) -> Result<bool, Failure> {
        let mut statement = self.connection.prepare_cached(DOERS)?;
        let hosts: BTreeSet<Uuid> = statement
            .query_map(params![list.realm, list.team], |row| column::id(row, 0))?
            .collect::<Result<_, _>>()?;
        let mut any = false;
        for host in hosts {
            if free::gone(self.place, host)? {
                free::host(self.connection, host, self.news)?;
                any = true;
            }
        }
        Ok(any)
    }
}

/// Whether two are one: an agent by its id, a person by its name.
fn same(a: &Owner, b: &Owner) -> bool {
    a.agent == b.agent && (a.agent.is_some() || a.name == b.name)
}

fn next(list: &List<'_>) -> Result<Option<TaskId>, Failure> {
    let mut statement = list.connection.prepare_cached(NEXT)?;
    Ok(statement.query_row(params![list.realm, list.team], |row| number(row, 0)).optional()?)
}
