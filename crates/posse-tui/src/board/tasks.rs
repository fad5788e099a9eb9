//! Lists of tasks as lines: the name of each list, and its tasks below it.

use std::collections::HashMap;

use posse_protocol::{ListId, Task, TaskId, TaskStatus};

use super::facts::{BoardTaskList, column};
use super::rows::Keyed;

/// How far a task is moved to the right at most.
const DEEPEST: usize = 6;

/// A line of the list.
pub(super) enum TaskLine {
    /// The name of a list, how many of its tasks are done, and how many there are.
    Title {
        list: ListId,
        label: String,
        done: usize,
        count: usize,
    },
    /// A task.
    Task {
        list: ListId,
        task: Box<Task>,
        /// Number of tasks that must be done one after another before it.
        depth: usize,
    },
}

impl Keyed for TaskLine {
    type Key = (ListId, Option<TaskId>);

    fn key(&self) -> Self::Key {
        match self {
            Self::Title { list, .. } => (list.clone(), None),
            Self::Task { list, task, .. } => (list.clone(), Some(task.id)),
        }
    }
}

impl TaskLine {
    /// Returns the list that it belongs to.
    pub(super) fn list(&self) -> &ListId {
        match self {
            Self::Title { list, .. } | Self::Task { list, .. } => list,
        }
    }

    pub(super) fn task(&self) -> Option<&Task> {
        match self {
            Self::Title { .. } => None,
            Self::Task { task, .. } => Some(task),
        }
    }
}

/// Returns the lines of all lists. Deleted tasks are left out.
pub(super) fn lines(lists: Vec<BoardTaskList>) -> Vec<TaskLine> {
    let mut lines = Vec::new();
    for list in lists {
        let mut tasks = list.tasks;
        tasks.retain(|task| task.status != TaskStatus::Deleted);
        let is_done = |task: &&Task| task.status == TaskStatus::Completed;
        lines.push(TaskLine::Title {
            list: list.list.clone(),
            label: column(&list.label),
            done: tasks.iter().filter(is_done).count(),
            count: tasks.len(),
        });
        let depths = depths(&tasks);
        lines.extend(tasks.into_iter().map(|task| TaskLine::Task {
            list: list.list.clone(),
            depth: depths.get(&task.id).copied().unwrap_or_default(),
            task: Box::new(task),
        }));
    }
    lines
}

/// Returns how many tasks come before each, one after another.
fn depths(tasks: &[Task]) -> HashMap<TaskId, usize> {
    let mut depths: HashMap<TaskId, usize> = HashMap::new();
    // A task mostly waits for older ones; tasks that wait for each other end it.
    for _ in 0..DEEPEST {
        let mut has_changed = false;
        for task in tasks {
            let before = task.blocked_by.iter();
            let before = before.filter_map(|id| depths.get(id)).max();
            let depth = before.map_or(0, |depth| (depth + 1).min(DEEPEST));
            has_changed |= depths.insert(task.id, depth) != Some(depth);
        }
        if !has_changed {
            break;
        }
    }
    depths
}
