//! The NoteWrite tool: writes a note of the team.

use std::borrow::Cow;

use posse_protocol::Name;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolset::team::changes;
use crate::toolset::{Caller, tell};
use posse_port::store::{Done, Op, OpResult, Refusal};
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The NoteWrite tool.
pub(super) struct NoteWrite(pub(super) Caller);

/// Input of NoteWrite.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteWriteInput {
    /// The note's name: lower-case letters, digits and hyphens.
    name: String,
    /// Its whole new text.
    text: String,
    /// The version you have read; omit it for a new note.
    version: Option<u64>,
    /// The team, if you are in several.
    team_name: Option<String>,
}

impl TypedTool for NoteWrite {
    type Input = NoteWriteInput;

    const NAME: &'static str = "NoteWrite";

    fn description(&self) -> Cow<'static, str> {
        "Writes a note that all members of your team can read: findings and agreements that \
         concern everyone. To add to a note, read it and write its whole text with the version you \
         read; if someone else has changed it, nothing is written and you are told."
            .into()
    }

    fn intent(&self, input: &NoteWriteInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(changes(format!(
            "write note {}",
            text::summary(&input.name)
        )))
    }

    async fn run(&self, input: NoteWriteInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let name: Name = input
            .name
            .parse()
            .map_err(|bad| tell(format!("name: {bad}")))?;
        let team = self.0.team(input.team_name.as_deref()).await?;
        let op = Op::WriteNote {
            team: Some(team),
            name,
            text: input.text,
            // Version 0 means that the note must not exist yet: no note is overwritten unread.
            expect: Some(input.version.unwrap_or(0)),
        };
        Ok(ToolOutput {
            then: FollowUp::Operations(vec![op]),
            ..ToolOutput::text("")
        })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        match results.first() {
            Some(Ok(Done::Noted { version })) => {
                Ok(ToolOutput::text(format!("Written, as version {version}.")))
            }
            Some(Err(Refusal::Changed { version: 0 })) => Err(tell(
                "Nothing was written: there is no such note yet. Omit version to create it.",
            )),
            Some(Err(Refusal::Changed { version })) => Err(tell(format!(
                "Nothing was written: the note is at version {version}. Read it with NoteRead, and \
                 write its whole text with that version."
            ))),
            Some(Err(refusal)) => Err(tell(format!("Nothing was written: {refusal}."))),
            _ => Err(tell("Nothing was written.")),
        }
    }
}
