//! The TeamHandOver tool: makes another member the lead.

use std::borrow::Cow;

use posse_protocol::{MailId, MailKind, Name};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::toolset::team::{changes, done};
use crate::toolset::{Caller, tell};
use posse_port::store::{Address, Op, OpResult};
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The TeamHandOver tool.
pub(super) struct TeamHandOver(pub(super) Caller);

/// Input of TeamHandOver.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamHandOverInput {
    /// The new lead, by its name in the team.
    to: String,
    /// The team, if you lead several.
    team_name: Option<String>,
}

impl TypedTool for TeamHandOver {
    type Input = TeamHandOverInput;

    const NAME: &'static str = "TeamHandOver";

    fn description(&self) -> Cow<'static, str> {
        "Makes another member the lead of a team that you lead. You stay in it; the new lead gets \
         mail to team-lead, idle reports and plans that await approval."
            .into()
    }

    fn intent(&self, input: &TeamHandOverInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(changes(format!(
            "hand the team over to {}",
            text::summary(&input.to)
        )))
    }

    async fn run(&self, input: TeamHandOverInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let team = self.0.led_team(input.team_name.as_deref()).await?;
        let to: Name = input.to.parse().map_err(|bad| tell(format!("to: {bad}")))?;
        let members = self
            .0
            .roster(&team)
            .await?
            .map(|team| team.members)
            .unwrap_or_default();
        let others: Vec<&str> = members
            .iter()
            .filter(|it| it.agent != self.0.agent)
            .map(|it| it.name.as_str())
            .collect();
        if !others.contains(&to.as_str()) {
            return Err(tell(format!(
                "to: {to} is not another member of team {team}; there are: {}",
                if others.is_empty() {
                    "none".to_owned()
                } else {
                    others.join(", ")
                }
            )));
        }
        let tell_them = Op::Send {
            id: MailId::from(Uuid::now_v7()),
            to: Address::Member {
                team: team.clone(),
                name: to.clone(),
            },
            kind: MailKind::Text,
            summary: format!("You lead team {team} now"),
            body: format!(
                "You lead team {team} from now on: I have handed it over to you. You get mail to \
                 team-lead, idle reports and plans that await approval."
            ),
        };
        let ops = vec![Op::HandOver { team, to }, tell_them];
        Ok(ToolOutput {
            then: FollowUp::Operations(ops),
            ..ToolOutput::text("")
        })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        done(
            results,
            "Handed over. You stay a member; the new lead was notified and is now team-lead.",
            "Not everything was done",
        )
    }
}
