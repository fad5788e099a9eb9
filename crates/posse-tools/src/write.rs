//! The Write tool: a whole file at once.

use std::borrow::Cow;

use posse_port::tool::{Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};
use posse_protocol::Display;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::answer::{blocking, count, shown};
use crate::preview;
use crate::replace::Replacement;
use crate::rooted_fs::{Access, RootedPath};

/// Writes whole files.
pub struct Write;

/// Input of Write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {
    /// The file, absolute or from the working directory. Missing directories are created.
    pub file_path: String,
    /// Its whole content.
    pub content: String,
}

impl TypedTool for Write {
    type Input = WriteInput;

    const NAME: &'static str = "Write";

    fn description(&self) -> Cow<'static, str> {
        "Writes a whole file. You must have read an existing file first, and it must not have \
         changed since. To change part of a file, use Edit."
            .into()
    }

    fn intent(&self, input: &WriteInput, workspace: &Workspace) -> Result<Intent, ToolError> {
        let place = RootedPath::find(&input.file_path, Access::Write, workspace)?;
        Ok(Intent {
            read_only: false,
            beside_others: false,
            waits: false,
            title: format!("Write {}", shown(&place.named, workspace)),
            subject: Subject::Edits(place.paths()),
        })
    }

    fn preview(&self, input: &WriteInput, workspace: &Workspace) -> Option<Display> {
        let new = input.content.as_bytes();
        preview::of_change(&input.file_path, workspace, |_| Ok(new.to_vec()))
    }

    async fn run(&self, input: WriteInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        blocking(context, move |context| write(&input, context)).await
    }
}

fn write(input: &WriteInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let place = RootedPath::judged(&input.file_path, Access::Write, context)?;
    let replacement = Replacement::begin(&place, context)?;
    let answer = context.wants_answer.then(|| {
        let old = replacement.old.as_ref();
        json!({
            "type": if old.is_some() { "update" } else { "create" },
            "filePath": place.named,
            "content": input.content,
            "structuredPatch": [],
            "originalFile": old.map(|old| String::from_utf8_lossy(&old.content)),
        })
    });
    let done = if replacement.old.is_some() {
        "replaced"
    } else {
        "created"
    };
    replacement.finish(input.content.as_bytes(), context)?;
    let lines = count(input.content.lines().count(), "line");
    let name = shown(&place.named, &context.workspace);
    Ok(ToolOutput {
        answer,
        ..ToolOutput::text(format!("{done} {name}: {lines}"))
    })
}
