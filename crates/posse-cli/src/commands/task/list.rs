//! `posse task list`.

use std::process::ExitCode;

use posse_port::store::{Page, Store, TaskFilter};
use posse_protocol::{ListId, TaskStatus};

use crate::output::{json_line, print, say_to_person, width};
use crate::present::tasks::{object, rows};

/// List tasks by number, without deleted ones.
#[derive(clap::Args)]
pub(super) struct ListTasks {
    /// List only tasks with this status
    #[arg(long, value_name = "STATUS", value_parser = super::update::listed_status())]
    status: Option<TaskStatus>,
    /// Print one JSON object per task
    #[arg(long)]
    json: bool,
}

impl ListTasks {
    pub(super) async fn run(self, store: &dyn Store, list: ListId) -> anyhow::Result<ExitCode> {
        let filter = TaskFilter {
            status: self.status,
            ..TaskFilter::default()
        };
        let tasks = store.tasks(list.clone(), filter, Page::all()).await?;
        if self.json {
            for task in &tasks {
                print(json_line(&object(task)).as_bytes())?;
            }
        } else if tasks.is_empty() {
            let teams = if list.team.is_none() {
                store.teams(Some(list.realm), Page::first(8)).await?
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
