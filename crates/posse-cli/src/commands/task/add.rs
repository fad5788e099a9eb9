//! `posse task add`.

use std::process::ExitCode;

use posse_port::store::{Done, NewTask, Op, Store};
use posse_protocol::{ListId, TaskId};
use serde_json::Value;

use super::metadata;
use crate::headless::input::stdin::text;
use crate::output::{json_line, print};
use crate::present::tasks::object;
use crate::select::tasks::{self, operate};

/// Add a task to the end of the list.
#[derive(clap::Args)]
pub(super) struct AddTask {
    /// What to do, in one line
    #[arg(value_parser = tasks::subject)]
    subject: String,
    /// Full description; `-` reads it from standard input
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Subject while it is in progress: "Fixing the parser"
    #[arg(long, value_name = "TEXT")]
    active_form: Option<String>,
    /// Tasks that must be done first: 1,2
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = super::id)]
    blocked_by: Vec<TaskId>,
    /// Role that may claim it: members whose role takes this word [default: anyone]
    #[arg(long, value_name = "WORD")]
    role: Option<String>,
    /// Command that must pass before an agent can complete it: "cargo test"
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Data to keep with it, such as effort=3; can be repeated
    #[arg(long, value_name = "KEY=JSON", value_parser = metadata::pair)]
    metadata: Vec<(String, Value)>,
    /// Print one JSON object: the task
    #[arg(long)]
    json: bool,
}

impl AddTask {
    pub(super) async fn run(self, store: &dyn Store, list: ListId) -> anyhow::Result<ExitCode> {
        let task = NewTask {
            subject: self.subject,
            description: self.description.map(text).transpose()?.unwrap_or_default(),
            active_form: self.active_form.filter(|form| !form.is_empty()),
            blocked_by: self.blocked_by,
            role: self.role,
            check: self.check,
            metadata: metadata::map(self.metadata),
        };
        let op = Op::CreateTask {
            team: list.team.clone(),
            task: Box::new(task),
        };
        let Done::TaskCreated(id) = operate(store, list.realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        let line = match self.json {
            true => json_line(&object(&super::task(store, &list, id).await?)),
            false => format!("added task {id}\n"),
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
