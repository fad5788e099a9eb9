//! The Read tool: a text with line numbers, or an image.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};
use posse_protocol::ToolContent;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{blocking, cannot, clip, count, shown, tell};
use crate::image::{self, ImageError};
use crate::replace::{MOST_BYTES, read_whole};
use crate::rooted_fs::{Access, RootedPath};

/// How many lines are told unless more are asked for.
const MOST_LINES: usize = 2000;
/// How much of a line is told.
const LINE_BYTES: usize = 2000;
/// How much text is told at once.
const TEXT_BYTES: usize = 256 << 10;

/// Reads files.
pub struct Read;

/// Input of Read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// The file, absolute or from the working directory.
    pub file_path: String,
    /// The first line to read, counted from 1.
    pub offset: Option<usize>,
    /// Number of lines; 2000 if absent.
    pub limit: Option<usize>,
}

impl TypedTool for Read {
    type Input = ReadInput;

    const NAME: &'static str = "Read";

    fn description(&self) -> Cow<'static, str> {
        "Reads a file. Each line of text comes with its number and a tab, which are not part of \
         the file. Images (PNG, JPEG, GIF, WebP) are shown. For a long file, give offset and \
         limit; for a directory, use Glob. Read a file before you edit or overwrite it."
            .into()
    }

    fn intent(&self, input: &ReadInput, workspace: &Workspace) -> Result<Intent, ToolError> {
        let place = RootedPath::find(&input.file_path, Access::Read, workspace)?;
        Ok(Intent {
            read_only: true,
            beside_others: true,
            waits: false,
            title: format!("Read {}", shown(&place.named, workspace)),
            subject: Subject::Reads(place.paths()),
        })
    }

    async fn run(&self, input: ReadInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        blocking(context, move |context| read(&input, context)).await
    }
}

fn read(input: &ReadInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let place = RootedPath::judged(&input.file_path, Access::Read, context)?;
    let opened = place.open()?;
    let (file, _) = opened.ok_or_else(|| cannot("read", &place.named, "there is no such file"))?;
    let readable = |start: &[u8], size: u64| {
        if image::media_type(start).is_some() {
            if size > image::LARGEST {
                let why = ImageError::TooLarge.to_string();
                return Err(cannot("show", &place.named, &why));
            }
        } else if start.contains(&0) {
            return Err(cannot(
                "read",
                &place.named,
                "it is neither text nor an image",
            ));
        }
        Ok(())
    };
    let content = read_whole(&place.named, file, MOST_BYTES, &context.cancel, readable)?;
    let output = match image::encoded(&content) {
        Ok(image) => ToolOutput {
            // A hook that needs the data reads the file.
            answer: context
                .wants_answer
                .then(|| json!({"type": "image", "file": {"type": image.media_type}})),
            content: vec![ToolContent::Image {
                media_type: image.media_type.into(),
                data: image.data,
            }],
            then: FollowUp::Nothing,
        },
        Err(_) => {
            let (offset, limit) = (input.offset.unwrap_or(1), input.limit.unwrap_or(MOST_LINES));
            let told = ToolOutput::text(numbered(&content, offset, limit)?);
            told.with_answer(context, || answer(&place.named, &content, offset, limit))
        }
    };
    context.seen.learn(&place.resolved, &content);
    Ok(output)
}

/// Returns the lines from `offset` on, for hooks.
fn answer(path: &Path, content: &[u8], offset: usize, limit: usize) -> Value {
    let text = String::from_utf8_lossy(content);
    let first = offset.max(1);
    let lines: Vec<&str> = text.lines().skip(first - 1).take(limit).collect();
    json!({
        "type": "text",
        "file": {
            "filePath": path,
            "content": lines.join("\n"),
            "numLines": lines.len(),
            "startLine": first,
            "totalLines": text.lines().count(),
        },
    })
}

/// Returns the lines from `offset` on, with their numbers, and notes on what is not as in the file.
fn numbered(content: &[u8], offset: usize, limit: usize) -> Result<String, ToolError> {
    if content.is_empty() {
        return Ok("(the file is empty)".into());
    }
    let first = offset.max(1);
    let (mut text, mut told, mut long, mut damaged, mut full) =
        (String::new(), 0, false, false, false);
    let lines = || {
        content
            .strip_suffix(b"\n")
            .unwrap_or(content)
            .split(|byte| *byte == b'\n')
    };
    let total = lines().count();
    for line in lines().skip(first - 1).take(limit) {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        damaged |= matches!(line, Cow::Owned(_));
        let start = clip(&line, LINE_BYTES);
        if !text.is_empty() && text.len() + start.len() > TEXT_BYTES {
            full = true;
            break;
        }
        let cut = if start.len() < line.len() { "…" } else { "" };
        long |= !cut.is_empty();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:>6}\t{start}{cut}", first + told);
        told += 1;
    }
    if told == 0 && first > total {
        return Err(tell(format!(
            "the file has {}; there is no line {first}",
            count(total, "line")
        )));
    }
    let next = first + told;
    if next <= total {
        let why = if full {
            "this is as much as fits at once; "
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "({why}lines {first} to {} of {total}; continue with offset {next})",
            next - 1
        );
    }
    if long {
        let _ = writeln!(
            text,
            "(lines ending in … are cut at {LINE_BYTES} bytes; use Grep to search them)"
        );
    }
    if damaged {
        text.push_str("(some bytes are not UTF-8 and show as \u{fffd})\n");
    }
    if content.windows(2).any(|pair| pair == b"\r\n") {
        text.push_str("(lines end in CRLF)\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_notes_follow() {
        let check = |content: &[u8], offset, limit, told: &str| {
            assert_eq!(numbered(content, offset, limit).unwrap(), told);
        };
        check(b"", 1, 9, "(the file is empty)");
        check(b"a\nb\n", 1, 9, "     1\ta\n     2\tb\n");
        check(b"a\n\nb", 0, 9, "     1\ta\n     2\t\n     3\tb\n");
        check(
            b"a\nb\nc\n",
            2,
            1,
            "     2\tb\n(lines 2 to 2 of 3; continue with offset 3)\n",
        );
        check(
            b"a\r\nb\r\n",
            1,
            9,
            "     1\ta\n     2\tb\n(lines end in CRLF)\n",
        );
        check(
            b"\xff\n",
            1,
            9,
            "     1\t\u{fffd}\n(some bytes are not UTF-8 and show as \u{fffd})\n",
        );
        assert_eq!(
            numbered(b"a\n", 3, 9),
            Err(tell("the file has 1 line; there is no line 3"))
        );
    }

    #[test]
    fn long_lines_and_long_texts_are_cut() {
        let line = "ä".repeat(1500);
        let told = numbered(line.as_bytes(), 1, 9).unwrap();
        assert!(
            told.starts_with(&format!(
                "     1\t{}…\n(lines ending in …",
                "ä".repeat(1000)
            )),
            "{told}"
        );
        let told = numbered("x".repeat(2000).as_bytes(), 1, 9).unwrap();
        assert!(!told.contains('…'));
        let many = format!("{}\n", "x".repeat(1000)).repeat(1000);
        let told = numbered(many.as_bytes(), 1, 2000).unwrap();
        assert!(told.len() < TEXT_BYTES + 200);
        let note = told.lines().last().unwrap();
        assert_eq!(
            note,
            "(this is as much as fits at once; lines 1 to 260 of 1000; continue with offset 261)"
        );
    }
}
