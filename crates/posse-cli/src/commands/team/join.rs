//! `posse team join`.

use std::process::ExitCode;

use posse_protocol::{AgentId, Name};

use crate::assemble::agent_args::AgentArgs;
use crate::assemble::run_config::SessionChoice;
use crate::config::store::StoreArgs;
use crate::headless::pane::{JoinTarget, join};
use crate::select::teams::{self, SessionArg};

/// Host members of a team in this process: one, or all that no other process hosts.
///
/// Shows what they do; if there is only one member, the lines you type go to it. When this process
/// ends, the lead's process continues them.
#[derive(clap::Args)]
pub(crate) struct JoinTeam {
    /// Team whose free members to host
    team: Option<Name>,
    #[command(flatten)]
    session: SessionArg,
    /// Host only this member
    #[arg(long, value_name = "ID", requires = "session", conflicts_with = "team")]
    member: Option<AgentId>,
    #[command(flatten)]
    pub(super) terms: AgentArgs,
}

impl JoinTeam {
    pub(crate) fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let given = self.terms.given(&["team", "join"])?;
        let runtime = crate::config::runtime()?;
        let result = runtime.block_on(async {
            let (session, joined) = self.joined(store).await?;
            join(
                self.terms
                    .run_config(Some(SessionChoice::Id(session)), store.clone(), given),
                joined,
            )
            .await
        });
        // Blocked threads are not waited for: a read of standard input may never return.
        runtime.shutdown_background();
        result
    }

    /// Returns the session, and whom to host.
    async fn joined(&self, store: &StoreArgs) -> anyhow::Result<(String, JoinTarget)> {
        if let (Some(member), Some(session)) = (self.member, &self.session.session) {
            return Ok((session.clone(), JoinTarget::Member(member)));
        }
        let store = crate::assemble::store::look_into_store(store)?;
        let team = teams::meant(store.as_ref(), self.team.as_ref(), &self.session).await?;
        Ok((team.realm.to_string(), JoinTarget::Team(team.name)))
    }
}
