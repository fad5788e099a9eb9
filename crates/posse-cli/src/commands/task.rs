//! `posse task`.

mod add;
mod list;
mod metadata;
mod show;
mod update;

use std::process::ExitCode;

use posse_port::store::{Done, Op, OpResult, Order, Store};
use posse_protocol::{ListId, Name, RealmId, Task, TaskId, Team};
use serde_json::{Value, json};

use crate::config::store::StoreArgs;
use crate::error::Advised;
use crate::output::tame;
use crate::output::time::{moment, now_ms};
use crate::select::sessions;
use crate::select::teams;

pub(crate) use self::list::rows;

/// Look at what is to be done, and change it.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct TaskCommand {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Add(add::Add),
    Update(update::Update),
}

/// Which list of tasks.
#[derive(Clone, Debug, clap::Args)]
struct ListArgs {
    /// The list of this team [default: the session's own]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Which list")]
    team: Option<Name>,
    /// Of this session; the beginning of its id will do [default: the one of this directory used last]
    #[arg(long, global = true, value_name = "ID", help_heading = "Which list")]
    session: Option<String>,
}

impl TaskCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = super::runtime()?;
        let store = crate::assemble::session::look_into_store(&self.store)?;
        runtime.block_on(async {
            let store = store.as_ref();
            let list = self.list.meant(store).await?;
            match self.command {
                Command::List(command) => command.run(store, list).await,
                Command::Show(command) => command.run(store, list).await,
                Command::Add(command) => command.run(store, list).await,
                Command::Update(command) => command.run(store, list).await,
            }
        })
    }
}

impl ListArgs {
    async fn meant(&self, store: &dyn Store) -> anyhow::Result<ListId> {
        if let Some(team) = &self.team {
            let session = teams::SessionArg {
                session: self.session.clone(),
            };
            return Ok(list_of(&teams::meant(store, Some(team), &session).await?));
        }
        if let Some(session) = &self.session
            && let Some(team) = teams::imported(store, session).await?
        {
            return Ok(list_of(&team));
        }
        let found = sessions::meant(store, self.session.as_deref()).await;
        let session = found.map_err(|error| match self.session {
            Some(_) => error,
            None => error.context(Advised {
                what: "no list of tasks is named".into(),
                advice: "--team NAME for a team's, --session ID for a session's own".into(),
            }),
        })?;
        Ok(ListId {
            realm: session.realm,
            team: None,
        })
    }
}

/// The list of a team.
pub(crate) fn list_of(team: &Team) -> ListId {
    ListId {
        realm: team.realm,
        team: Some(team.name.clone()),
    }
}

/// Does one thing for the person, and gives what came of it; a refusal is an error.
pub(crate) async fn operate(store: &dyn Store, realm: RealmId, op: Op) -> anyhow::Result<Done> {
    let results: Vec<OpResult> = store
        .operate(Order {
            realm,
            ops: vec![op],
            at_ms: now_ms(),
        })
        .await?;
    match results.into_iter().next() {
        Some(result) => Ok(result?),
        None => anyhow::bail!("the store did not say what came of it"),
    }
}

/// The task of that number.
async fn task(store: &dyn Store, list: &ListId, id: TaskId) -> anyhow::Result<Task> {
    let found = store.task(list.clone(), id).await?;
    Ok(found.ok_or(posse_port::store::Refusal::NoSuchTask { id })?)
}

/// The number of a task as people write it: `3`, or `#3`.
fn id(text: &str) -> Result<TaskId, String> {
    let number = text.trim();
    let parsed = number
        .strip_prefix('#')
        .unwrap_or(number)
        .parse()
        .ok()
        .filter(|number: &u64| *number > 0);
    parsed
        .map(TaskId)
        .ok_or_else(|| format!("`{}` is no task number", tame(text)))
}

/// A task for programs.
pub(crate) fn object(task: &Task) -> Value {
    json!({
        "id": task.id, "subject": task.subject, "description": task.description,
        "active_form": task.active_form, "status": task.status,
        "owner": task.owner.as_ref().map(|owner| &owner.name), "lost_by": task.lost_by,
        "blocked_by": task.blocked_by, "waits_for": task.waits_for, "blocks": task.blocks,
        "created_at": moment(task.created_ms), "updated_at": moment(task.updated_ms),
        "role": task.role, "check": task.check, "metadata": task.metadata, "version": task.version,
    })
}

/// Numbers as people read them.
fn numbers(tasks: &[TaskId]) -> String {
    tasks
        .iter()
        .map(TaskId::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Text that was given, or is piped in where `-` stands for it.
pub(crate) fn text(given: String) -> anyhow::Result<String> {
    use std::io::{IsTerminal, Read};

    use anyhow::Context;
    /// More than any text that is kept.
    const LONGEST: u64 = 1 << 20;
    if given != "-" {
        return Ok(given);
    }
    if std::io::stdin().is_terminal() {
        crate::output::say_to_person("type the text; Ctrl-D on a line of its own ends it");
    }
    let mut text = String::new();
    std::io::stdin()
        .take(LONGEST)
        .read_to_string(&mut text)
        .context("cannot read the text from standard input")?;
    text.truncate(text.trim_end().len());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_be_written_as_people_do() {
        for good in ["3", "#3", " 3 ", " #3"] {
            assert_eq!(id(good), Ok(TaskId(3)), "{good}");
        }
        for wrong in ["abc", "0", "-1", "", "# 3", "3.5"] {
            assert_eq!(id(wrong), Err(format!("`{wrong}` is no task number")));
        }
    }
}
