//! `posse team delete`.

use std::process::ExitCode;

use posse_port::store::{Op, Store};
use posse_protocol::Name;
use serde_json::json;

use super::signal::told;
use crate::select::tasks::operate;
use crate::select::teams;

/// Remove a team with its mail, its tasks and its notes. What its members have said and done stays, as sessions.
///
/// Refused while a process has a member of it.
#[derive(clap::Args)]
pub(super) struct DeleteTeam {
    /// The team
    name: Name,
    #[command(flatten)]
    session: teams::SessionArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl DeleteTeam {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        // Nothing brings it back, so nobody guesses which.
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
        told(self.json, object, &format!("{} is deleted\n", team.name))
    }
}
