//! The AskUserQuestion tool. It never runs: a person is asked instead, and what they answer is the
//! result of the call.

use std::borrow::Cow;

use posse_port::tool::{Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};
use posse_protocol::{Choices, QuestionKind};

use crate::toolset::tell;

/// The AskUserQuestion tool.
pub(super) struct AskUserQuestion;

impl TypedTool for AskUserQuestion {
    type Input = Choices;

    const NAME: &'static str = crate::definition::tool_name::ASK;

    fn description(&self) -> Cow<'static, str> {
        "Asks the user up to four questions with options, and waits for the answers. Use it when the \
         decision is theirs and you cannot find the answer yourself: unclear requirements, a choice with \
         consequences. Put the option you recommend first. They may answer in their own words, or not at \
         all."
            .into()
    }

    fn intent(&self, input: &Choices, _: &Workspace) -> Result<Intent, ToolError> {
        input.check().map_err(tell)?;
        let headers = input.questions.iter().map(|asked| asked.header.as_str());
        let headers: Vec<&str> = headers.collect();
        Ok(Intent {
            read_only: true,
            beside_others: true,
            subject: Subject::Asks(QuestionKind::Choice),
            waits: false,
            title: format!("ask: {}", headers.join(", ")),
        })
    }

    async fn run(&self, _: Choices, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Err(tell("no one was asked"))
    }
}
