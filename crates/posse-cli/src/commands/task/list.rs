//! `posse task list`.

use std::process::ExitCode;

use posse_port::store::{Store, TaskFilter};
use posse_protocol::{ListId, Task, TaskStatus};

use super::{numbers, object};
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, say_to_person, tame, width};

const COLUMNS: [Column; 6] = [
    needed("ID").right(),
    needed("STATUS"),
    spare("OWNER", 1),
    spare("ROLE", 2),
    needed("WAITS FOR"),
    needed("SUBJECT"),
];

/// List tasks by their numbers, without those that were deleted.
#[derive(clap::Args)]
pub(super) struct List {
    /// Only those of this status
    #[arg(long, value_name = "STATUS", value_parser = super::update::listed_status())]
    status: Option<TaskStatus>,
    /// One JSON object per task
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) async fn run(self, store: &dyn Store, list: ListId) -> anyhow::Result<ExitCode> {
        let filter = TaskFilter {
            status: self.status,
            ..TaskFilter::default()
        };
        let tasks = store.tasks(list.clone(), filter, usize::MAX).await?;
        if self.json {
            for task in &tasks {
                print(json_line(&object(task)).as_bytes())?;
            }
        } else if tasks.is_empty() {
            let teams = if list.team.is_none() {
                store.teams(Some(list.realm), 8).await?
            } else {
                Vec::new()
            };
            let names: Vec<String> = teams
                .iter()
                .map(|team| format!("--team {}", team.name))
                .collect();
            let elsewhere = if names.is_empty() {
                String::new()
            } else {
                format!("; see also {}", names.join(", "))
            };
            say_to_person(&format!("there is no such task in the list{elsewhere}"));
        } else {
            print(rows(&tasks, width()).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Tasks as a table; of what a task waits for, only what is open. Roles only if there are any.
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

/// Which column tells the role.
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
