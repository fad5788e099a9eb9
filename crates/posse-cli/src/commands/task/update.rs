//! `posse task update`.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use posse_port::store::{Done, Op, Store, TaskChange};
use posse_protocol::{ListId, TaskId, TaskStatus};
use serde_json::Value;

use super::metadata;
use crate::error::Advised;
use crate::error::usage::UsageError;
use crate::headless::input::stdin::text;
use crate::output::{json_line, print};
use crate::present::tasks::{numbers, object};
use crate::select::tasks::{self, operate};

/// Change a task. Fields that are not given stay as they are.
#[derive(clap::Args)]
pub(super) struct UpdateTask {
    /// Its number
    #[arg(value_parser = super::id)]
    id: TaskId,
    /// What to do, in one line
    #[arg(long, value_name = "TEXT", value_parser = tasks::subject)]
    subject: Option<String>,
    /// Full description; `-` reads it from standard input
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Subject while it is in progress; empty for none
    #[arg(long, value_name = "TEXT")]
    active_form: Option<String>,
    /// Status
    #[arg(long, value_name = "STATUS", value_parser = any_status())]
    status: Option<TaskStatus>,
    /// Owner; in a team one of its members
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Remove the owner; a task in progress becomes pending
    #[arg(long, conflicts_with = "owner")]
    no_owner: bool,
    /// More tasks it must wait for: 1,2
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = super::id)]
    blocked_by: Vec<TaskId>,
    /// Tasks it no longer has to wait for
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = super::id)]
    not_blocked_by: Vec<TaskId>,
    /// Role that may claim it: members whose role takes this word; empty for anyone
    #[arg(long, value_name = "WORD")]
    role: Option<String>,
    /// Command that must pass before an agent can complete it; empty for none
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Data to keep with it; null removes the key; can be repeated
    #[arg(long, value_name = "KEY=JSON", value_parser = metadata::pair)]
    metadata: Vec<(String, Value)>,
    /// Change it only if it is still at this version; `posse task show` shows it
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
    /// Print one JSON object: the changed task
    #[arg(long)]
    json: bool,
}

impl UpdateTask {
    pub(super) async fn run(self, store: &dyn Store, list: ListId) -> anyhow::Result<ExitCode> {
        let change = TaskChange {
            subject: self.subject,
            description: self.description.map(text).transpose()?,
            active_form: self.active_form,
            status: self.status,
            owner: if self.no_owner {
                Some(None)
            } else {
                self.owner.map(Some)
            },
            block_on: self.blocked_by,
            unblock_from: self.not_blocked_by,
            role: self.role,
            check: self.check,
            passed: None,
            metadata: metadata::map(self.metadata),
        };
        if change == TaskChange::default() {
            let what = "nothing to change: give an option, such as --status completed";
            anyhow::bail!(UsageError::new(
                &["task", "update"],
                ErrorKind::MissingRequiredArgument,
                what,
            ));
        }
        let id = self.id;
        let op = Op::UpdateTask {
            team: list.team.clone(),
            id,
            expect: self.if_version,
            change: Box::new(change),
        };
        let before = store.task(list.clone(), id).await?;
        if before
            .as_ref()
            .is_some_and(|task| task.status == TaskStatus::Deleted)
        {
            anyhow::bail!(Advised {
                what: format!("task {id} was deleted"),
                advice: format!(
                    "`posse task show {id}` still shows it; `posse task add` adds another"
                ),
            });
        }
        let Done::TaskUpdated { version, freed } = operate(store, list.realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        let after = super::task(store, &list, id).await?;
        let mut line = match before.is_some_and(|before| before.version == version) {
            _ if self.json => json_line(&object(&after)),
            true => format!("task {id}: nothing changed\n"),
            false => format!("task {id}: {} (version {version})\n", after.status),
        };
        if !self.json && !freed.is_empty() {
            line.push_str(&format!("ready to start now: {}\n", numbers(&freed)));
        }
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn any_status() -> impl TypedValueParser<Value = TaskStatus> {
    status(&TaskStatus::ALL)
}

/// Returns those that a list can have.
pub(super) fn listed_status() -> impl TypedValueParser<Value = TaskStatus> {
    status(&TaskStatus::ALL[..3])
}

fn status(of: &'static [TaskStatus]) -> impl TypedValueParser<Value = TaskStatus> {
    PossibleValuesParser::new(of.iter().map(|status| status.as_str())).try_map(|word| {
        TaskStatus::ALL
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or("no status")
    })
}
