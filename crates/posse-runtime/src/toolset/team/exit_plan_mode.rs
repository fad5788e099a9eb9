//! The ExitPlanMode tool: submits a plan.

use std::borrow::Cow;

use posse_protocol::{MailId, Name, PermissionMode, RequestKind};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::toolset::team::changes;
use crate::toolset::team::place::failed;
use crate::toolset::{Caller, tell};
use posse_port::store::{Address, Done, Op, OpResult, Page};
use posse_port::tool::{
    FollowUp, Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The ExitPlanMode tool.
pub(super) struct ExitPlanMode(pub(super) Caller);

/// Input of ExitPlanMode.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExitPlanModeInput {
    /// The plan: what you will change, where and in which order, and how you will verify it.
    plan: String,
}

impl TypedTool for ExitPlanMode {
    type Input = ExitPlanModeInput;

    const NAME: &'static str = "ExitPlanMode";

    fn description(&self) -> Cow<'static, str> {
        "Submits your plan to the lead of your team. Change nothing until it is approved; the \
         answer comes as mail, and a rejection says what to change."
            .into()
    }

    fn intent(&self, _: &ExitPlanModeInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(changes("submit a plan"))
    }

    async fn run(&self, input: ExitPlanModeInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.plan.trim().is_empty() {
            return Err(tell("plan is empty: say what you will do"));
        }
        let here = self.0.here()?;
        if here.rights.mode() != PermissionMode::Plan {
            return Err(tell(
                "Nothing was submitted: you are no longer in plan mode. Carry out what was \
                 approved.",
            ));
        }
        let team = self.0.team(None).await?;
        let open = self
            .0
            .factory
            .ports
            .store
            .requests(here.session.realm, Some(self.0.agent), Page::all())
            .await
            .map_err(failed)?;
        let waits = open
            .iter()
            .find(|request| request.kind == RequestKind::Plan && request.to != self.0.agent);
        if let Some(waits) = waits {
            return Err(tell(format!(
                "Nothing was submitted: a plan of yours already awaits its answer (request_id {}). \
                 End your turn; the answer comes as mail.",
                waits.id
            )));
        }
        let op = Op::Request {
            id: MailId::from(Uuid::now_v7()),
            to: Address::Member {
                team,
                name: Name::lead(),
            },
            kind: RequestKind::Plan,
            text: input.plan,
        };
        Ok(ToolOutput {
            then: FollowUp::Operations(vec![op]),
            ..ToolOutput::text("")
        })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        match results.first() {
            Some(Ok(Done::Requested { request, .. })) => Ok(ToolOutput::text(format!(
                "The lead has your plan (request_id {request}). Change nothing until it is \
                 approved. The answer comes as mail and wakes you: you may end your turn."
            ))),
            Some(Err(refusal)) => Err(tell(format!("Nothing was submitted: {refusal}."))),
            _ => Err(tell("Nothing was submitted.")),
        }
    }
}
