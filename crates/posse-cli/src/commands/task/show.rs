//! `posse task show`.

use std::process::ExitCode;

use posse_port::store::Store;
use posse_protocol::{ListId, Task, TaskId};

use crate::output::time::minute;
use crate::output::{json_line, print, tame};
use crate::present::tasks::{numbers, object};

/// Show a task, even a deleted one.
#[derive(clap::Args)]
pub(super) struct ShowTask {
    /// Its number
    #[arg(value_parser = super::id)]
    id: TaskId,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ShowTask {
    pub(super) async fn run(self, store: &dyn Store, list: ListId) -> anyhow::Result<ExitCode> {
        let task = super::task(store, &list, self.id).await?;
        let shown = if self.json {
            json_line(&object(&task))
        } else {
            readable(&task)
        };
        print(shown.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn readable(task: &Task) -> String {
    let mut out = format!(
        "\x1b[1mtask {}: {}\x1b[0m\n{}",
        task.id,
        tame(&task.subject),
        task.status
    );
    if let Some(owner) = &task.owner {
        out.push_str(&format!(" · {}", tame(&owner.name)));
    }
    if let Some(lost) = &task.lost_by {
        out.push_str(&format!(" · {} had it when its process died", tame(lost)));
    }
    out.push_str(&format!(
        " · version {} · changed {}\n",
        task.version,
        minute(task.updated_ms)
    ));
    for (what, tasks) in [("waits for", &task.waits_for), ("blocks", &task.blocks)] {
        if !tasks.is_empty() {
            out.push_str(&format!("{what} {}\n", numbers(tasks)));
        }
    }
    if let Some(doing) = &task.active_form {
        out.push_str(&format!("while in progress: {}\n", tame(doing)));
    }
    if let Some(role) = &task.role {
        out.push_str(&format!("for {}\n", tame(role)));
    }
    if let Some(check) = &task.check {
        out.push_str(&format!("checked by: {}\n", tame(check)));
    }
    for (key, value) in &task.metadata {
        out.push_str(&format!("{} = {}\n", tame(key), tame(&value.to_string())));
    }
    if !task.description.trim().is_empty() {
        out.push_str(&format!("\n{}\n", tame(task.description.trim_end())));
    }
    out
}
