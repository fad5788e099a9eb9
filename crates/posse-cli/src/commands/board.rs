//! `posse board`.

use std::process::ExitCode;

use posse_tui::board::Scope;

use crate::assemble::store::OpenStore;
use crate::board::BoardPlace;
use crate::config::caller;
use crate::config::environment::working_directory;
use crate::config::store::StoreArgs;
use crate::config::store_choice::{meant_store, there};
use crate::error::Advised;
use crate::headless::terminal::has_screen;
use crate::interactive;
use crate::select::sessions;

/// Show everybody at work on one screen.
///
/// Agents, tasks, messages, costs, questions and worktrees.
///
/// Shows the sessions of this directory, those that need you first. Enter opens the conversation of
/// an agent; leaving that returns to the board. Looking changes nothing. ? lists the keys.
#[derive(clap::Args)]
pub(crate) struct BoardCommand {
    /// Show only this session; a unique prefix of its ID is enough
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Show all sessions of the store
    #[arg(long, conflicts_with = "session")]
    all: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl BoardCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if !has_screen() {
            anyhow::bail!(Advised {
                what: "the board needs a terminal of at least 20 columns and 5 rows".into(),
                advice: "posse agents ps, posse task list, posse requests list and posse cost print the same in lines"
                    .into(),
            });
        }
        caller::only_a_person_can("open the board")?;
        let runtime = crate::config::runtime()?;
        let shown = runtime.block_on(self.show());
        // Blocked threads are not waited for: a read of the terminal may never return.
        runtime.shutdown_background();
        shown
    }

    async fn show(self) -> anyhow::Result<ExitCode> {
        let meant = meant_store(&self.store)?;
        let open = OpenStore::at(&there(meant.place)?, meant.feed_age)?;
        let session = match &self.session {
            Some(prefix) => Some(sessions::by_prefix(&*open.store, prefix).await?),
            None => None,
        };
        let scope = match (&session, self.all) {
            (Some(_), _) => Scope::Session,
            (None, true) => Scope::Store,
            (None, false) => Scope::Directory,
        };
        let cwd = match &session {
            Some(session) => session.cwd.clone(),
            None => working_directory()?,
        };
        interactive::board::show(&open, BoardPlace { session, cwd }, scope).await
    }
}
