//! The NoteRead tool: shows a note of the team, or lists all.

use posse_port::store::Page;
use std::borrow::Cow;

use posse_protocol::ListId;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::prompt;
use crate::toolset::team::looks;
use crate::toolset::team::place::failed;
use crate::toolset::{Caller, tell};
use posse_port::text::line;
use posse_port::tool::{Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};

/// The NoteRead tool.
pub(super) struct NoteRead(pub(super) Caller);

/// Input of NoteRead.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteReadInput {
    /// The note's name; if absent, all are listed.
    name: Option<String>,
    /// The team, if you are in several.
    team_name: Option<String>,
}

impl TypedTool for NoteRead {
    type Input = NoteReadInput;

    const NAME: &'static str = "NoteRead";

    fn description(&self) -> Cow<'static, str> {
        "Shows a note of your team with its author and version; without a name, lists all notes."
            .into()
    }

    fn intent(&self, input: &NoteReadInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(looks(match &input.name {
            Some(name) => format!("read note {}", posse_port::text::summary(name)),
            None => "list notes".to_owned(),
        }))
    }

    async fn run(&self, input: NoteReadInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let list = ListId {
            realm: self.0.here()?.session.realm,
            team: Some(self.0.team(input.team_name.as_deref()).await?),
        };
        let notes = self
            .0
            .factory
            .ports
            .store
            .notes(list, Page::all())
            .await
            .map_err(failed)?;
        let Some(name) = input.name else {
            return Ok(ToolOutput::text(prompt::team::notes(&notes)));
        };
        match notes.iter().find(|note| note.name.as_str() == name) {
            Some(note) => Ok(ToolOutput::text(prompt::team::note(note))),
            None => Err(tell(format!(
                "There is no note {}.\n{}",
                line(&name),
                prompt::team::notes(&notes)
            ))),
        }
    }
}
