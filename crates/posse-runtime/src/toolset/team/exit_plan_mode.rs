//! The ExitPlanMode tool: submits a plan.

use std::borrow::Cow;

use posse_protocol::{MailId, Name, PermissionMode, QuestionKind, RequestKind};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::toolset::team::changes;
use crate::toolset::team::place::failed;
use crate::toolset::{Caller, tell};
use posse_port::store::{Address, Done, Op, OpResult, Page};
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// What is told of a plan without words.
const EMPTY: &str = "plan is empty: say what you will do";

/// The ExitPlanMode tool.
pub(crate) struct ExitPlanMode {
    /// The agent that plans.
    pub(crate) caller: Caller,
    /// Who approves its plan.
    pub(crate) approver: PlanApprover,
}

/// Who approves a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanApprover {
    /// The lead of its team, by mail.
    Lead,
    /// A person, by a question.
    Person,
}

/// Input of ExitPlanMode.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitPlanModeInput {
    /// The plan: what you will change, where and in which order, and how you will verify it.
    plan: String,
}

impl TypedTool for ExitPlanMode {
    type Input = ExitPlanModeInput;

    const NAME: &'static str = "ExitPlanMode";

    fn description(&self) -> Cow<'static, str> {
        match self.approver {
            PlanApprover::Lead => {
                "Submits your plan to the lead of your team. Change nothing until it is approved; the \
                 answer comes as mail, and a rejection says what to change."
            }
            PlanApprover::Person => {
                "Only in plan mode: submits your plan to the user and waits for the answer. Change nothing \
                 until it is approved; a rejection says what to change. Do not use it for work that \
                 changes nothing, such as research."
            }
        }
        .into()
    }

    fn intent(&self, input: &ExitPlanModeInput, _: &Workspace) -> Result<Intent, ToolError> {
        let submits = changes("submit a plan");
        Ok(match self.approver {
            PlanApprover::Lead => submits,
            PlanApprover::Person => {
                if input.plan.trim().is_empty() {
                    return Err(tell(EMPTY));
                }
                if self.caller.here().is_ok_and(|here| here.fork) {
                    // It has this tool because its tools must be its parent's.
                    return Err(tell("A fork does not submit plans: answer with it."));
                }
                Intent {
                    subject: Subject::Asks(QuestionKind::Plan),
                    ..submits
                }
            }
        })
    }

    async fn run(&self, input: ExitPlanModeInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        if input.plan.trim().is_empty() {
            return Err(tell(EMPTY));
        }
        let here = self.caller.here()?;
        if here.rights.mode() != PermissionMode::Plan {
            return Err(tell(
                "Nothing was submitted: you are no longer in plan mode. Carry out what was \
                 approved.",
            ));
        }
        let team = self.caller.team(None).await?;
        let open = self
            .caller
            .factory
            .ports
            .store
            .requests(here.session.realm, Some(self.caller.agent), Page::all())
            .await
            .map_err(failed)?;
        let waits = open
            .iter()
            .find(|request| request.kind == RequestKind::Plan && request.to != self.caller.agent);
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
