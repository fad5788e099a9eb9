//! `posse task update`.

use std::process::ExitCode;

use clap::CommandFactory;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use posse_protocol::{ListId, TaskId, TaskStatus};
use posse_runtime::port::store::{Done, Op, Store, TaskChange};
use serde_json::Value;

use super::{metadata, numbers, object, operate, text};
use crate::output::{json_line, print};

/// Change a task. What is not named stays.
#[derive(clap::Args)]
pub(super) struct Update {
    /// Its number
    id: TaskId,
    /// What is to be done, in a line
    #[arg(long, value_name = "TEXT", value_parser = super::add::subject)]
    subject: Option<String>,
    /// The same at length; `-` reads it from standard input
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The subject while it is being done; an empty one is none
    #[arg(long, value_name = "TEXT")]
    active_form: Option<String>,
    /// How far it is
    #[arg(long, value_name = "STATUS", value_parser = any_status())]
    status: Option<TaskStatus>,
    /// Who is to do it; in a team one of its members
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Nobody is to do it; it is pending again if it was being done
    #[arg(long, conflicts_with = "owner")]
    no_owner: bool,
    /// What it must wait for besides: 1,2
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    block_on: Vec<TaskId>,
    /// What it need not wait for any more
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    unblock_from: Vec<TaskId>,
    /// Something to keep with it; null removes the key; can be repeated
    #[arg(long, value_name = "KEY=JSON", value_parser = metadata::pair)]
    metadata: Vec<(String, Value)>,
    /// Only if it is still at this version; `posse task show` tells it
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
    /// One JSON object: the task as it is then
    #[arg(long)]
    json: bool,
}

impl Update {
    pub(super) async fn run(self, store: &dyn Store, list: ListId) -> anyhow::Result<ExitCode> {
        let change = TaskChange {
            subject: self.subject,
            description: self.description.map(text).transpose()?,
            active_form: self.active_form,
            status: self.status,
            owner: if self.no_owner { Some(None) } else { self.owner.map(Some) },
            block_on: self.block_on,
            unblock_from: self.unblock_from,
            metadata: metadata::map(self.metadata),
        };
        if change == TaskChange::default() {
            let what = "nothing to change: say what, --status completed for one";
            crate::Args::command().error(ErrorKind::MissingRequiredArgument, what).exit();
        }
        let id = self.id;
        let op =
            Op::UpdateTask { team: list.team.clone(), id, expect: self.if_version, change: Box::new(change) };
        let Done::TaskUpdated { version, freed } = operate(store, list.realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        let line = match self.json {
            true => json_line(&object(&super::task(store, &list, id).await?)),
            false if freed.is_empty() => format!("task {id} is at version {version}\n"),
            false => format!("task {id} is at version {version}; free to begin now: {}\n", numbers(&freed)),
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn any_status() -> impl TypedValueParser<Value = TaskStatus> {
    status(&TaskStatus::ALL)
}

/// Those that a list can have.
pub(super) fn listed_status() -> impl TypedValueParser<Value = TaskStatus> {
    status(&TaskStatus::ALL[..3])
}

fn status(of: &'static [TaskStatus]) -> impl TypedValueParser<Value = TaskStatus> {
    PossibleValuesParser::new(of.iter().map(|status| status.as_str()))
        .try_map(|word| TaskStatus::ALL.into_iter().find(|status| status.as_str() == word).ok_or("no status"))
}
