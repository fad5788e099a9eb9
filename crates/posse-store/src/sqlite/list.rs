//! The tasks of a list, read whole: with what they wait for and what waits for them.

use posse_protocol::{AgentId, Name, Owner, RealmId, Task, TaskId, TaskStatus};
use posse_runtime::port::store::TaskFilter;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::column;
use super::error::Failure;

/// A list to look into.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) connection: &'a Connection,
    pub(super) realm: [u8; 16],
    /// Empty for the session's own.
    pub(super) team: &'a str,
}

/// A task's columns, in the order of [`task`].
const TASK: &str = "SELECT id, subject, description, active_form, status, owner, owner_agent, lost_by,
    created_ms, updated_ms, metadata, version FROM task";

impl<'a> List<'a> {
    pub(super) fn new(connection: &'a Connection, realm: RealmId, team: Option<&'a Name>) -> Self {
        Self { connection, realm: realm.uuid().into_bytes(), team: column::team(team) }
    }

    /// A task, also a deleted one.
    pub(super) fn task(&self, id: TaskId) -> Result<Option<Task>, Failure> {
        let sql = format!("{TASK} WHERE realm = ?1 AND team = ?2 AND id = ?3");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let key = params![self.realm, self.team, column::bits(id.0)];
        let mut found = statement.query_row(key, task).optional()?;
        if let Some(task) = &mut found {
            self.link(std::slice::from_mut(task))?;
        }
        Ok(found)
    }

    /// Tasks by their numbers, but not deleted ones.
    pub(super) fn tasks(&self, filter: TaskFilter, limit: usize) -> Result<Vec<Task>, Failure> {
        let sql = format!(
            "{TASK} WHERE realm = ?1 AND team = ?2 AND id > ?3 AND status <> 3 AND status = coalesce(?4, status)
             ORDER BY id LIMIT ?5"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let (after, status) = (column::most(filter.after), filter.status.map(column::status));
        let key = params![self.realm, self.team, after, status, column::most(limit)];
        let mut tasks: Vec<Task> = statement.query_map(key, task)?.collect::<Result<_, _>>()?;
        self.link(&mut tasks)?;
        Ok(tasks)
    }

    /// All tasks by their numbers, deleted ones too.
    pub(super) fn all(&self) -> Result<Vec<Task>, Failure> {
        let sql = format!("{TASK} WHERE realm = ?1 AND team = ?2 ORDER BY id");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut tasks: Vec<Task> =
            statement.query_map(params![self.realm, self.team], task)?.collect::<Result<_, _>>()?;
        self.link(&mut tasks)?;
        Ok(tasks)
    }

    /// The status of a task, also of a deleted one.
    pub(super) fn status(&self, id: TaskId) -> Result<Option<TaskStatus>, Failure> {
        let sql = "SELECT status FROM task WHERE realm = ?1 AND team = ?2 AND id = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm, self.team, column::bits(id.0)];
        Ok(statement.query_row(key, |row| column::status_from(row, 0)).optional()?)
    }

    /// What a task waits for, or has waited for, in order.
    pub(super) fn needs(&self, id: TaskId) -> Result<Vec<TaskId>, Failure> {
        let sql = "SELECT needs FROM dependency WHERE realm = ?1 AND team = ?2 AND task = ?3 ORDER BY needs";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows =
            statement.query_map(params![self.realm, self.team, column::bits(id.0)], |row| number(row, 0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds the dependencies of tasks that are sorted by their numbers: two queries, however many they are.
    fn link(&self, tasks: &mut [Task]) -> Result<(), Failure> {
        let (Some(first), Some(last)) = (tasks.first().map(|it| it.id), tasks.last().map(|it| it.id)) else {
            return Ok(());
        };
        let range = params![self.realm, self.team, column::bits(first.0), column::bits(last.0)];
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
    tasks.binary_search_by_key(&id, |task| task.id).ok().map(|at| &mut tasks[at])
}

/// A task's number in column `at`.
pub(super) fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<TaskId> {
    row.get(at).map(column::from_bits).map(TaskId)
}

/// A task without its dependencies.
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
    })
}
