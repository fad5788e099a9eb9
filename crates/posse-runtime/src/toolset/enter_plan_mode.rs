//! The EnterPlanMode tool: begins plan mode, if a person agrees.

use std::borrow::Cow;

use posse_protocol::{PermissionMode, QuestionKind};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::prompt;
use crate::toolset::{Caller, tell};
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The EnterPlanMode tool.
pub(super) struct EnterPlanMode(pub(super) Caller);

/// Input of EnterPlanMode.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EnterPlanModeInput {}

impl TypedTool for EnterPlanMode {
    type Input = EnterPlanModeInput;

    const NAME: &'static str = "EnterPlanMode";

    fn description(&self) -> Cow<'static, str> {
        "Asks the user to begin plan mode: you read and think, change nothing, and submit a plan for \
         approval. Use it before a change that is large, hard to undo, or that the user may want \
         differently; not for small changes or questions."
            .into()
    }

    fn intent(&self, _: &EnterPlanModeInput, _: &Workspace) -> Result<Intent, ToolError> {
        let here = self.0.here()?;
        if here.parent.is_some() {
            // A fork of the main agent has this tool too, because its tools must be its parent's.
            return Err(tell("Only the main agent begins plan mode."));
        }
        if here.rights.mode() == PermissionMode::Plan {
            return Err(tell(format!("Nothing changes. {}", prompt::plan::RULES)));
        }
        Ok(Intent {
            read_only: true,
            beside_others: false,
            subject: Subject::Asks(QuestionKind::Permission),
            waits: false,
            title: "begin plan mode".into(),
        })
    }

    async fn run(&self, _: EnterPlanModeInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput {
            then: FollowUp::Mode(PermissionMode::Plan),
            ..ToolOutput::text(prompt::plan::RULES)
        })
    }
}
