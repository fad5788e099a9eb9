//! The Edit tool: replaces text in a file.

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memmem;
use posse_port::tool::{Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};
use posse_protocol::Display;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::answer::{blocking, cannot, clip, count, shown, tell};
use crate::preview;
use crate::replace::Replacement;
use crate::rooted_fs::{Access, RootedPath};

/// Number of lines shown around a change.
const AROUND: usize = 2;
/// Number of lines shown of a change.
const MOST_LINES: usize = 12;
/// Number of bytes shown of a line.
const LINE_BYTES: usize = 200;

/// Changes parts of files.
pub struct Edit;

/// Input of Edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// The file, absolute or from the working directory.
    pub file_path: String,
    /// The text to replace, exactly as in the file: without line numbers, with its indentation.
    pub old_string: String,
    /// The replacement.
    pub new_string: String,
    /// Whether to replace every occurrence.
    #[serde(default)]
    pub replace_all: bool,
}

impl TypedTool for Edit {
    type Input = EditInput;

    const NAME: &'static str = "Edit";

    fn description(&self) -> Cow<'static, str> {
        "Replaces text in a file. You must have read the file, and it must not have changed since. \
         old_string must occur exactly once: include enough surrounding lines, or set replace_all \
         to change every occurrence. To write a new file, use Write."
            .into()
    }

    fn intent(&self, input: &EditInput, workspace: &Workspace) -> Result<Intent, ToolError> {
        let place = RootedPath::find(&input.file_path, Access::Write, workspace)?;
        Ok(Intent {
            read_only: false,
            beside_others: false,
            waits: false,
            title: format!("Edit {}", shown(&place.named, workspace)),
            subject: Subject::Edits(place.paths()),
        })
    }

    fn preview(&self, input: &EditInput, workspace: &Workspace) -> Option<Display> {
        preview::of_change(&input.file_path, workspace, |old| {
            let old = old.ok_or_else(|| tell("there is no such file"))?;
            Ok(change(old, input)?.content)
        })
    }

    async fn run(&self, input: EditInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        blocking(context, move |context| edit(&input, context)).await
    }
}

fn edit(input: &EditInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let place = RootedPath::judged(&input.file_path, Access::Write, context)?;
    let absent = || {
        cannot(
            "edit",
            &place.named,
            "there is no such file; Write creates one",
        )
    };
    // Checked first, because a replacement creates missing directories.
    place.open()?.ok_or_else(absent)?;
    let replacement = Replacement::begin(&place, context)?;
    let old = &replacement.old.as_ref().ok_or_else(absent)?.content;
    let change = change(old, input)?;
    let name = shown(&place.named, &context.workspace);
    let told = match change.times {
        1 => format!("edited {name}:\n{}", snippet(&change)),
        times => format!("edited {name}: {} replaced", count(times, "occurrence")),
    };
    let answer = context.wants_answer.then(|| {
        json!({
            "filePath": place.named,
            "oldString": input.old_string,
            "newString": input.new_string,
            "originalFile": String::from_utf8_lossy(old),
            "structuredPatch": [],
            "userModified": false,
            "replaceAll": input.replace_all,
        })
    });
    replacement.finish(&change.content, context)?;
    Ok(ToolOutput {
        answer,
        ..ToolOutput::text(told)
    })
}

/// The result of an edit.
#[derive(Debug, PartialEq)]
struct Change {
    content: Vec<u8>,
    times: usize,
    /// Where the first replacement begins, and its length.
    at: usize,
    length: usize,
}

/// Applies an edit to a file's content.
fn change(content: &[u8], input: &EditInput) -> Result<Change, ToolError> {
    if input.old_string.is_empty() {
        return Err(tell("old_string is empty; Write writes a whole file"));
    }
    if input.old_string == input.new_string {
        return Err(tell(
            "old_string and new_string are the same; nothing to change",
        ));
    }
    let (mut old, mut new) = (input.old_string.clone(), input.new_string.clone());
    let mut found: Vec<usize> = memmem::find_iter(content, &old).collect();
    if found.is_empty() && !old.contains('\r') && memmem::find(content, b"\r\n").is_some() {
        // Line ends are not shown to the model, so it cannot ask for them; they are kept.
        old = old.replace('\n', "\r\n");
        new = new.replace("\r\n", "\n").replace('\n', "\r\n");
        found = memmem::find_iter(content, &old).collect();
    }
    let Some(&at) = found.first() else {
        return Err(tell(
            "old_string is not in the file; read the file again and copy the text exactly",
        ));
    };
    if found.len() > 1 && !input.replace_all {
        let times = found.len();
        return Err(tell(format!(
            "old_string is in the file {times} times; include more of the surrounding text, or set \
             replace_all"
        )));
    }
    let mut changed = Vec::with_capacity(content.len() + new.len());
    let mut kept = 0;
    for start in &found {
        changed.extend_from_slice(&content[kept..*start]);
        changed.extend_from_slice(new.as_bytes());
        kept = start + old.len();
    }
    changed.extend_from_slice(&content[kept..]);
    Ok(Change {
        content: changed,
        times: found.len(),
        at,
        length: new.len(),
    })
}

/// Returns the changed lines and a few around them, numbered.
fn snippet(change: &Change) -> String {
    let newlines = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
    let first = newlines(&change.content[..change.at]);
    let last = first + newlines(&change.content[change.at..change.at + change.length]);
    let from = first.saturating_sub(AROUND);
    let mut text = String::new();
    let content = change
        .content
        .strip_suffix(b"\n")
        .unwrap_or(&change.content);
    let wanted = last + AROUND + 1 - from;
    let lines = content.split(|byte| *byte == b'\n').enumerate().skip(from);
    for (index, line) in lines.take(wanted.min(MOST_LINES)) {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:>6}\t{}", index + 1, clip(&line, LINE_BYTES));
    }
    if wanted > MOST_LINES {
        text.push_str("     …\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(old: &str, new: &str, replace_all: bool) -> EditInput {
        EditInput {
            file_path: "f".into(),
            old_string: old.into(),
            new_string: new.into(),
            replace_all,
        }
    }

    #[test]
    fn one_text_comes_in_place_of_another() {
        let check = |content: &[u8], old, new, all, expected: &[u8]| {
            let change = change(content, &input(old, new, all)).unwrap();
            assert_eq!(
                String::from_utf8_lossy(&change.content),
                String::from_utf8_lossy(expected)
            );
        };
        check(b"a b c", "b", "x", false, b"a x c");
        check(b"b b", "b", "xy", true, b"xy xy");
        check(
            b"a\r\nb\r\nc\r\n",
            "a\nb",
            "x\ny",
            false,
            b"x\r\ny\r\nc\r\n",
        );
        check(b"a\r\nb\n", "b", "", false, b"a\r\n\n");
        check(b"\xff b", "b", "x", false, b"\xff x");
    }

    #[test]
    fn what_is_not_clear_is_not_done() {
        let check = |content: &[u8], old, new, expected: &str| {
            let ToolError::Tell(told) = change(content, &input(old, new, false)).unwrap_err()
            else {
                panic!("an edit never stops a run")
            };
            assert!(told.contains(expected), "{told}");
        };
        check(b"a", "b", "c", "not in the file");
        check(b"a a a", "a", "c", "3 times");
        check(b"a", "a", "a", "the same");
        check(b"a", "", "c", "empty");
    }

    #[test]
    fn the_snippet_shows_the_place() {
        let lines: String = (1..=9).map(|n| format!("l{n}\n")).collect();
        let change = change(lines.as_bytes(), &input("l5\n", "x\ny\n", false)).unwrap();
        let shown =
            "     3\tl3\n     4\tl4\n     5\tx\n     6\ty\n     7\tl6\n     8\tl7\n     9\tl8\n";
        assert_eq!(snippet(&change), shown);
    }
}
