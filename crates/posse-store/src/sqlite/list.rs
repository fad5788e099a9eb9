//! Queries for the tasks of a list, with what they wait for and what waits for them.

use std::collections::BTreeSet;

use posse_port::store::{Page, Ready, TaskFilter};
use posse_protocol::{AgentId, Name, Owner, RealmId, Takes, Task, TaskId, TaskStatus};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::column;
use super::error::SqliteFailure;
use crate::columns;

/// Reads one task list.
#[derive(Clone, Copy)]
pub(super) struct ListReader<'a> {
    pub(super) connection: &'a Connection,
    pub(super) realm: [u8; 16],
    /// Empty for the session's own list.
    pub(super) team: &'a str,
}

/// A task's columns, in the order of [`task`].
const TASK: &str =
    "SELECT id, subject, description, active_form, status, owner, owner_agent, lost_by,
    created_ms, updated_ms, metadata, version, role, check_command FROM task";

/// Unowned tasks that can be claimed.
pub(super) const ANY: &str = "SELECT id FROM task INDEXED BY task_ready
    WHERE realm = ?1 AND team = ?2 AND status = 0 AND owner IS NULL AND waits = 0 AND ?5 IS NULL";

/// Claimable tasks that are marked with one role, or with none.
pub(super) const MARKED: &str = "SELECT id FROM task INDEXED BY task_role
    WHERE realm = ?1 AND team = ?2 AND role IS ?5 AND status = 0 AND owner IS NULL AND waits = 0";

/// Pending tasks assigned to one agent; `NULL` is the person.
pub(super) const OWN: &str = "SELECT id FROM task INDEXED BY task_own
    WHERE realm = ?1 AND team = ?2 AND owner_agent IS ?5 AND status = 0 AND owner IS NOT NULL AND waits = 0
        AND (owner_agent IS NOT NULL OR owner = 'user')";

/// Pending tasks assigned to any agent.
pub(super) const ASSIGNED: &str = "SELECT id FROM task INDEXED BY task_assigned
    WHERE realm = ?1 AND team = ?2 AND status = 0 AND owner_agent IS NOT NULL AND waits = 0 AND ?5 IS NULL";

/// Pending tasks that an owner of a given name lost.
pub(super) const LOST: &str = "SELECT id FROM task INDEXED BY task_lost
    WHERE realm = ?1 AND team = ?2 AND lost_by = ?5 AND status = 0";

/// Returns the query for a page of tasks that meet a condition: numbers beyond parameter 3, at most
/// as many as parameter 4 says.
pub(super) fn paged(tasks: &str, page: &Page<TaskId>) -> String {
    let (than, way) = columns::rising(page);
    format!("{tasks} AND id {than} ?3 ORDER BY id {way} LIMIT ?4")
}

/// The owner whose tasks are looked for.
#[derive(Clone, Copy)]
pub(super) enum TaskOwner {
    Person,
    Agent(AgentId),
    Nobody,
}

impl<'a> ListReader<'a> {
    pub(super) fn new(connection: &'a Connection, realm: RealmId, team: Option<&'a Name>) -> Self {
        Self {
            connection,
            realm: realm.uuid().into_bytes(),
            team: column::team(team),
        }
    }

    /// Returns a task, including a deleted one.
    pub(super) fn task(&self, id: TaskId) -> Result<Option<Task>, SqliteFailure> {
        let sql = format!("{TASK} WHERE realm = ?1 AND team = ?2 AND id = ?3");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let key = params![self.realm, self.team, column::bits(id.0)];
        let mut found = statement.query_row(key, task).optional()?;
        if let Some(task) = &mut found {
            self.link(std::slice::from_mut(task))?;
        }
        Ok(found)
    }

    /// Returns tasks ordered by number, without deleted ones.
    pub(super) fn tasks(
        &self,
        filter: &TaskFilter,
        page: &Page<TaskId>,
    ) -> Result<Vec<Task>, SqliteFailure> {
        if filter.ready.is_some() || filter.assigned || filter.lost_by.is_some() {
            return self.pending(filter, page);
        }
        // As a literal, not as a parameter, so that SQLite can use the partial index of the
        // status.
        let status = filter
            .status
            .map(|status| format!("AND status = {}", column::status(status)));
        let owner = filter.owner.map(|_| "AND owner_agent = ?5");
        let tasks = format!(
            "{TASK} WHERE realm = ?1 AND team = ?2 AND status <> 3 {} {}",
            status.unwrap_or_default(),
            owner.unwrap_or("AND ?5 IS NULL"),
        );
        let mut statement = self.connection.prepare_cached(&paged(&tasks, page))?;
        let (edge, limit) = (columns::edge(&page.by(|id| id.0)), column::most(page.limit));
        let owner = filter.owner.map(|owner| owner.uuid().into_bytes());
        let key = params![self.realm, self.team, edge, limit, owner];
        let tasks = statement.query_map(key, task)?.collect::<Result<_, _>>()?;
        let mut tasks = page.in_order(tasks);
        self.link(&mut tasks)?;
        Ok(tasks)
    }

    /// Returns pending tasks that an index finds, ordered by number. If several indices apply,
    /// one is followed and the others filter.
    fn pending(
        &self,
        filter: &TaskFilter,
        page: &Page<TaskId>,
    ) -> Result<Vec<Task>, SqliteFailure> {
        if filter
            .status
            .is_some_and(|status| status != TaskStatus::Pending)
        {
            return Ok(Vec::new());
        }
        let of_owner = filter.owner.is_some() && filter.ready.is_none();
        let asked = [
            filter.ready.is_some(),
            filter.assigned,
            filter.lost_by.is_some(),
            of_owner,
        ];
        let alone = asked.into_iter().filter(|asked| *asked).count() == 1;
        // With several conditions the limit applies to their intersection, not to each range.
        let reach = &Page {
            limit: if alone { page.limit } else { usize::MAX },
            ..*page
        };
        let mut ranges = Vec::new();
        if let Some(ready) = &filter.ready {
            ranges.push(self.ready_for(ready, filter.owner, reach)?);
        }
        if filter.assigned {
            ranges.push(self.range(ASSIGNED, reach, None::<&str>)?);
        }
        if let Some(name) = &filter.lost_by {
            ranges.push(self.range(LOST, reach, name)?);
        }
        let mut ids = ranges.pop().unwrap_or_default();
        ids.retain(|id| ranges.iter().all(|range| range.contains(id)));
        let mut tasks = Vec::new();
        for id in ids {
            let owned = |task: &Task| task.owner.as_ref().and_then(|owner| owner.agent);
            let found = self.task(id)?;
            tasks
                .extend(found.filter(|task| filter.owner.is_none() || owned(task) == filter.owner));
            if tasks.len() == page.limit {
                break;
            }
        }
        tasks.truncate(page.limit);
        Ok(page.in_order(tasks))
    }

    /// Returns what an agent could claim now; only tasks of `owner`, if that is given.
    fn ready_for(
        &self,
        ready: &Ready,
        owner: Option<AgentId>,
        reach: &Page<TaskId>,
    ) -> Result<Vec<TaskId>, SqliteFailure> {
        match (owner, ready.agent) {
            (None, agent) => self.ready(
                agent.map_or(TaskOwner::Nobody, TaskOwner::Agent),
                &ready.takes,
                reach,
            ),
            (Some(owner), Some(agent)) if owner == agent => {
                self.own(TaskOwner::Agent(owner), reach)
            }
            (Some(_), _) => Ok(Vec::new()),
        }
    }

    /// Returns the numbers that somebody could claim now, in the direction of `reach`: their own
    /// tasks, and unowned ones that they take.
    pub(super) fn ready(
        &self,
        whose: TaskOwner,
        takes: &Takes,
        reach: &Page<TaskId>,
    ) -> Result<Vec<TaskId>, SqliteFailure> {
        let mut found: BTreeSet<TaskId> = self.own(whose, reach)?.into_iter().collect();
        match takes {
            Takes::Any => found.extend(self.range(ANY, reach, None::<&str>)?),
            Takes::Only { unmarked, roles } => {
                if *unmarked {
                    found.extend(self.range(MARKED, reach, None::<&str>)?);
                }
                for role in roles {
                    found.extend(self.range(MARKED, reach, Some(role))?);
                }
            }
        }
        Ok(match reach.backwards {
            false => found.into_iter().take(reach.limit).collect(),
            true => found.into_iter().rev().take(reach.limit).collect(),
        })
    }

    /// Returns the first numbers of tasks assigned to somebody that could be started.
    fn own(&self, whose: TaskOwner, reach: &Page<TaskId>) -> Result<Vec<TaskId>, SqliteFailure> {
        match whose {
            TaskOwner::Person => self.range(OWN, reach, None::<[u8; 16]>),
            TaskOwner::Agent(agent) => self.range(OWN, reach, Some(agent.uuid().into_bytes())),
            TaskOwner::Nobody => Ok(Vec::new()),
        }
    }

    /// Returns the first numbers in one range of an index, in the direction of `reach`.
    fn range(
        &self,
        sql: &str,
        reach: &Page<TaskId>,
        key: impl rusqlite::ToSql,
    ) -> Result<Vec<TaskId>, SqliteFailure> {
        let mut statement = self.connection.prepare_cached(&paged(sql, reach))?;
        let (edge, limit) = (
            columns::edge(&reach.by(|id| id.0)),
            column::most(reach.limit),
        );
        let rows = statement.query_map(params![self.realm, self.team, edge, limit, key], |row| {
            number(row, 0)
        });
        Ok(rows?.collect::<Result<_, _>>()?)
    }

    /// Returns all tasks ordered by number, including deleted ones.
    pub(super) fn all(&self) -> Result<Vec<Task>, SqliteFailure> {
        let sql = format!("{TASK} WHERE realm = ?1 AND team = ?2 ORDER BY id");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut tasks: Vec<Task> = statement
            .query_map(params![self.realm, self.team], task)?
            .collect::<Result<_, _>>()?;
        self.link(&mut tasks)?;
        Ok(tasks)
    }

    /// Returns the status of a task, including a deleted one.
    pub(super) fn status(&self, id: TaskId) -> Result<Option<TaskStatus>, SqliteFailure> {
        let sql = "SELECT status FROM task WHERE realm = ?1 AND team = ?2 AND id = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm, self.team, column::bits(id.0)];
        Ok(statement
            .query_row(key, |row| column::status_from(row, 0))
            .optional()?)
    }

    /// Returns what a task waits for or has waited for, ordered by number.
    pub(super) fn needs(&self, id: TaskId) -> Result<Vec<TaskId>, SqliteFailure> {
        let sql = "SELECT needs FROM dependency WHERE realm = ?1 AND team = ?2 AND task = ?3 ORDER BY needs";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement
            .query_map(params![self.realm, self.team, column::bits(id.0)], |row| {
                number(row, 0)
            })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds the dependencies of tasks that are sorted by number. Takes two queries, regardless of
    /// how many tasks there are.
    fn link(&self, tasks: &mut [Task]) -> Result<(), SqliteFailure> {
        let (Some(first), Some(last)) =
            (tasks.first().map(|it| it.id), tasks.last().map(|it| it.id))
        else {
            return Ok(());
        };
        let range = params![
            self.realm,
            self.team,
            column::bits(first.0),
            column::bits(last.0)
        ];
        let sql = "SELECT d.task, d.needs, n.status FROM dependency d CROSS JOIN task n
                   WHERE d.realm = ?1 AND d.team = ?2 AND d.task BETWEEN ?3 AND ?4
                       AND n.realm = d.realm AND n.team = d.team AND n.id = d.needs
                   ORDER BY d.task, d.needs";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(range)?;
        while let Some(row) = rows.next()? {
            let (needs, status) = (number(row, 1)?, column::status_from(row, 2)?);
            if let Some(task) = find(tasks, number(row, 0)?) {
                task.blocked_by.push(needs);
                if !status.is_settled() {
                    task.waits_for.push(needs);
                }
            }
        }
        let sql = "SELECT needs, task FROM dependency
                   WHERE realm = ?1 AND team = ?2 AND needs BETWEEN ?3 AND ?4 ORDER BY needs, task";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(range)?;
        while let Some(row) = rows.next()? {
            if let Some(task) = find(tasks, number(row, 0)?) {
                task.blocks.push(number(row, 1)?);
            }
        }
        Ok(())
    }
}

fn find(tasks: &mut [Task], id: TaskId) -> Option<&mut Task> {
    tasks
        .binary_search_by_key(&id, |task| task.id)
        .ok()
        .map(|at| &mut tasks[at])
}

/// Returns a task's number in column `at`.
pub(super) fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<TaskId> {
    row.get(at).map(column::from_bits).map(TaskId)
}

/// Returns a task without its dependencies.
fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    let agent = column::maybe_id(row, 6)?.map(AgentId::from);
    let owner: Option<String> = row.get(5)?;
    Ok(Task {
        id: number(row, 0)?,
        subject: row.get(1)?,
        description: row.get(2)?,
        active_form: row.get(3)?,
        status: column::status_from(row, 4)?,
        owner: owner.map(|name| Owner { agent, name }),
        lost_by: row.get(7)?,
        blocked_by: Vec::new(),
        waits_for: Vec::new(),
        blocks: Vec::new(),
        created_ms: row.get(8)?,
        updated_ms: row.get(9)?,
        metadata: column::maybe_json(row, 10)?.unwrap_or_default(),
        version: column::from_bits(row.get(11)?),
        role: row.get(12)?,
        check: row.get(13)?,
    })
}
