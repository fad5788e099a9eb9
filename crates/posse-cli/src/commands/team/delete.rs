//! `posse team delete`.

use std::process::ExitCode;

use posse_port::store::{Op, Store};
use posse_protocol::Name;
use serde_json::json;

use super::signal::told;
use crate::select::tasks::operate;
use crate::select::teams;

/// Remove a team with its mail, tasks and notes. The transcripts of its members stay, as sessions.
///
/// Refused while a process hosts one of its members. If several sessions have a team of this name, the
/// one of this directory is meant, or --session says which.
#[derive(clap::Args)]
pub(super) struct DeleteTeam {
    /// Team to remove
    name: Name,
    #[command(flatten)]
    session: teams::SessionArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl DeleteTeam {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        // It cannot be undone, so the team is never guessed.
        let team = teams::certain(store, &self.name, &self.session).await?;
        operate(
            store,
            team.realm,
            Op::DeleteTeam {
                team: team.name.clone(),
            },
        )
        .await?;
        let object = json!({"team": team.name, "session_id": team.session(), "deleted": true});
        let (name, session) = (&team.name, team.session());
        told(
            self.json,
            object,
            &format!("{name} of session {session} is deleted\n"),
        )
    }
}
