//! `posse task`.

mod add;
mod list;
mod metadata;
mod show;
mod update;

use std::process::ExitCode;

use posse_port::store::Store;
use posse_protocol::{ListId, Name, Task, TaskId};

use crate::config::store::StoreArgs;
use crate::error::Advised;
use crate::output::tame;
use crate::select::sessions;
use crate::select::tasks::list_of;
use crate::select::{team_choice, teams};

/// Show and change tasks.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct TaskCommand {
    #[command(subcommand)]
    command: TaskSubcommand,
    #[command(flatten)]
    list: TaskListArgs,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum TaskSubcommand {
    List(list::ListTasks),
    Show(show::ShowTask),
    Add(add::AddTask),
    Update(update::UpdateTask),
}

/// Which list of tasks.
#[derive(Clone, Debug, clap::Args)]
struct TaskListArgs {
    /// Use the list of this team [default: the session's own]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Task list")]
    team: Option<Name>,
    /// Session to use; a unique prefix of its ID is enough [default: the last one used in this
    /// directory]
    #[arg(long, global = true, value_name = "ID", help_heading = "Task list")]
    session: Option<String>,
}

impl TaskCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = crate::config::runtime()?;
        let store = crate::assemble::store::look_into_store(&self.store)?;
        runtime.block_on(async {
            let store = store.as_ref();
            let list = self.list.meant(store).await?;
            match self.command {
                TaskSubcommand::List(command) => command.run(store, list).await,
                TaskSubcommand::Show(command) => command.run(store, list).await,
                TaskSubcommand::Add(command) => command.run(store, list).await,
                TaskSubcommand::Update(command) => command.run(store, list).await,
            }
        })
    }
}

impl TaskListArgs {
    /// Returns the list that the flags name.
    async fn meant(&self, store: &dyn Store) -> anyhow::Result<ListId> {
        if let Some(team) = &self.team {
            let session = teams::SessionArg {
                session: self.session.clone(),
            };
            return Ok(list_of(&teams::meant(store, Some(team), &session).await?));
        }
        if let Some(session) = &self.session
            && let Some(team) = team_choice::imported(store, session).await?
        {
            return Ok(list_of(&team));
        }
        let found = sessions::meant(store, self.session.as_deref()).await;
        let session = found.map_err(|error| match self.session {
            Some(_) => error,
            None => error.context(Advised {
                what: "no task list given".into(),
                advice: "use --team NAME for a team's list, --session ID for a session's own"
                    .into(),
            }),
        })?;
        Ok(ListId {
            realm: session.realm,
            team: None,
        })
    }
}

/// Returns the task with this number.
async fn task(store: &dyn Store, list: &ListId, id: TaskId) -> anyhow::Result<Task> {
    let found = store.task(list.clone(), id).await?;
    Ok(found.ok_or(posse_port::store::Refusal::NoSuchTask { id })?)
}

/// A text that is not the number of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a task number", tame(.0))]
struct TaskIdError(String);

/// Parses the number of a task as people write it: `3` or `#3`.
fn id(text: &str) -> Result<TaskId, TaskIdError> {
    let number = text.trim();
    let parsed = number
        .strip_prefix('#')
        .unwrap_or(number)
        .parse()
        .ok()
        .filter(|number: &u64| *number > 0);
    parsed
        .map(TaskId)
        .ok_or_else(|| TaskIdError(text.to_owned()))
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
            assert_eq!(
                id(wrong).map_err(|error| error.to_string()),
                Err(format!("`{wrong}` is not a task number"))
            );
        }
    }
}
