//! Bash without background commands, which the model is then not told about.

use std::borrow::Cow;

use posse_port::tool::{Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ABOUT, Bash, BashInput};

/// Runs commands and waits for each.
pub struct ForegroundBash(pub Bash);

/// Input of [`ForegroundBash`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForegroundBashInput {
    /// The command.
    pub command: String,
    /// How long it may take, in milliseconds: at most 600000; 120000 if absent.
    pub timeout: Option<u64>,
    /// What it does, in five to ten words, for people who watch.
    pub description: Option<String>,
    /// Whether to run it outside the sandbox. A person is asked: only for what cannot work inside.
    pub outside: Option<bool>,
}

impl From<ForegroundBashInput> for BashInput {
    fn from(input: ForegroundBashInput) -> Self {
        let ForegroundBashInput {
            command,
            timeout,
            description,
            outside,
        } = input;
        Self {
            command,
            timeout,
            description,
            run_in_background: None,
            outside,
        }
    }
}

impl TypedTool for ForegroundBash {
    type Input = ForegroundBashInput;

    const NAME: &'static str = Bash::NAME;

    fn description(&self) -> Cow<'static, str> {
        ABOUT.into()
    }

    fn intent(
        &self,
        input: &ForegroundBashInput,
        workspace: &Workspace,
    ) -> Result<Intent, ToolError> {
        self.0.intent(&input.clone().into(), workspace)
    }

    async fn run(
        &self,
        input: ForegroundBashInput,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        self.0.run(input.into(), context).await
    }

    async fn abandon(&self, marker: String) {
        self.0.abandon(marker).await;
    }
}
