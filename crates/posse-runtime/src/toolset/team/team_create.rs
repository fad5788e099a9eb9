//! The TeamCreate tool: creates a team that its caller leads.

use std::borrow::Cow;

use posse_protocol::{Name, Takes};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;

use crate::definition::agent_type::MAIN;
use crate::toolset::team::{changes, done};
use crate::toolset::{Caller, tell};
use posse_port::store::{Joining, Op, OpResult};
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The TeamCreate tool.
pub(super) struct TeamCreate(pub(super) Caller);

/// Input of TeamCreate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamCreateInput {
    /// Its name: up to 64 lower-case letters, digits and hyphens.
    team_name: String,
    /// What it is for.
    description: String,
}

impl TypedTool for TeamCreate {
    type Input = TeamCreateInput;

    const NAME: &'static str = "TeamCreate";

    fn description(&self) -> Cow<'static, str> {
        "Creates a team that you lead: agents that stay alive between pieces of work, write to \
         each other, and share a task list and notes. Then start its teammates with Agent, giving \
         name and team_name. Use it for work with several interdependent parts; for one answer a \
         sub-agent is enough."
            .into()
    }

    fn intent(&self, input: &TeamCreateInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(changes(format!(
            "create team {}",
            text::summary(&input.team_name)
        )))
    }

    async fn run(&self, input: TeamCreateInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let team: Name = input
            .team_name
            .parse()
            .map_err(|bad| tell(format!("team_name: {bad}")))?;
        if team.is_reserved() {
            return Err(tell(format!(
                "team_name: {team} is reserved; choose another"
            )));
        }
        let here = self.0.here()?;
        if here.parent.is_some() {
            // A fork of the main agent has this tool too, because its tools must be its parent's.
            return Err(tell("Only the main agent creates teams."));
        }
        let lead = Joining {
            agent: self.0.agent,
            agent_type: MAIN.to_owned(),
            model: here.model.clone(),
            prompt: String::new(),
            color: None,
            backend: "in-process".to_owned(),
            cwd: here.rights.workspace().cwd.clone(),
            role: None,
            // A lead claims no tasks by itself: it coordinates.
            takes: Takes::Only {
                unmarked: false,
                roles: Vec::new(),
            },
        };
        let settings = Map::new();
        let op = Op::CreateTeam {
            team,
            description: input.description,
            settings,
            lead: Box::new(lead),
        };
        Ok(ToolOutput {
            then: FollowUp::Operations(vec![op]),
            ..ToolOutput::text("")
        })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        done(
            results,
            "The team is created, and you lead it: its members write to you as team-lead. Start \
             them with Agent (name and team_name), and add work to its list with TaskCreate: they \
             claim open tasks by themselves.",
            "No team was created",
        )
    }
}
