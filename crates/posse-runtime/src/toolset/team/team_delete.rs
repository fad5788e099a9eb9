//! The TeamDelete tool: removes a team whose members have ended.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolset::team::{changes, done};
use crate::toolset::{Caller, tell};
use posse_port::store::{Op, OpResult, Refusal};
use posse_port::tool::{
    FollowUp, Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The TeamDelete tool.
pub(super) struct TeamDelete(pub(super) Caller);

/// Input of TeamDelete.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamDeleteInput {
    /// The team, if you lead several.
    team_name: Option<String>,
}

impl TypedTool for TeamDelete {
    type Input = TeamDeleteInput;

    const NAME: &'static str = "TeamDelete";

    fn description(&self) -> Cow<'static, str> {
        "Removes a team that you lead, with its tasks, notes and inboxes. Its members must have \
         ended: ask each with SendMessage, message {\"type\": \"shutdown_request\"}."
            .into()
    }

    fn intent(&self, _: &TeamDeleteInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(changes("delete team"))
    }

    async fn run(&self, input: TeamDeleteInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let team = self.0.led_team(input.team_name.as_deref()).await?;
        Ok(ToolOutput {
            then: FollowUp::Operations(vec![Op::DeleteTeam { team }]),
            ..ToolOutput::text("")
        })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        if let Some(Err(Refusal::MembersLive { names })) = results.first() {
            return Err(tell(format!(
                "Nothing was removed: these members are still alive: {}. Ask each to shut down \
                 (SendMessage, message {{\"type\": \"shutdown_request\"}}), and remove the team \
                 when they have left.",
                names.join(", ")
            )));
        }
        done(
            results,
            "The team was removed with its tasks, notes and inboxes.",
            "Nothing was removed",
        )
    }
}
