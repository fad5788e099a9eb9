//! Entries of a transcript, for people and for programs.

use std::path::Path;

use posse_port::store::StoredEntry;
use posse_protocol::content::loaded_names;
use posse_protocol::{AgentId, ContentBlock, EntryKind, RawJson, ReplyFacts, Role, ToolContent};
use posse_tui::conversation::{Framed, call_title};
use posse_tui::terminal::styled_text;
use posse_tui::text::{self, render};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::usage::usage;
use crate::output::tame;
use crate::output::time::{minute, moment};
use crate::output::transcript::{fitted, folded, shortened};

/// Maximum length of a call's input and of an answer.
const SHOWN: usize = 400;
/// Maximum length of words for the model only, in a file.
const REMINDER: usize = 120;

/// An entry with everything that is known about it.
#[derive(Serialize)]
struct EntryLine {
    seq: u64,
    kind: EntryKind,
    at: String,
    agent: AgentId,
    checksum: String,
    /// As sent: the checksum covers what is between the brackets. `None` if it is not JSON.
    messages: Option<Box<RawValue>>,
    /// The exact text, only if it cannot be on a line as it is: with line breaks, or damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<Value>,
}

/// Returns an entry as one line.
pub(crate) fn line(stored: &StoredEntry) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&described(stored))?)
}

/// Returns an entry as a value, for `show --json`.
pub(crate) fn value(stored: &StoredEntry) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(described(stored))?)
}

fn described(stored: &StoredEntry) -> EntryLine {
    let entry = &stored.entry;
    let text = String::from_utf8_lossy(&entry.sent()).into_owned();
    // Outside of strings JSON may contain line breaks, where a space means the same.
    let breaks = |c: char| c == '\n' || c == '\r';
    let messages = RawValue::from_string(format!("[{}]", text.replace(breaks, " "))).ok();
    EntryLine {
        seq: entry.seq,
        kind: entry.kind,
        at: moment(stored.at_ms),
        agent: stored.agent,
        checksum: format!("{:016x}", entry.checksum),
        exact: (messages.is_none() || text.contains(breaks)).then_some(text),
        messages,
        reply: entry.reply.as_ref().map(facts),
    }
}

/// Returns facts about a reply, with the keys that all token counts have.
fn facts(reply: &ReplyFacts) -> Value {
    let mut facts = json!(reply);
    facts["usage"] = usage(&reply.usage);
    facts
}

/// How a transcript is shown to people.
#[derive(Clone, Copy)]
pub(crate) struct TranscriptView<'a> {
    /// Width of the terminal, which gets replies as they are meant; a file gets them as they were
    /// written.
    pub(crate) columns: Option<usize>,
    /// Where the agent works: files below are named from there.
    pub(crate) cwd: &'a Path,
}

/// Returns a block of a message for people.
pub(crate) fn paragraph(
    role: Role,
    block: &ContentBlock,
    at_ms: i64,
    view: TranscriptView<'_>,
) -> String {
    match block {
        ContentBlock::Text { text } if role == Role::User => {
            told(text.trim_end(), &minute(at_ms), view.columns)
        }
        ContentBlock::Text { text } => match view.columns {
            Some(columns) => {
                let columns = u16::try_from(columns).unwrap_or(u16::MAX);
                format!("\n{}", styled_text(&render(text, columns)))
            }
            None => format!("\n{}\n", tame(text.trim_end())),
        },
        ContentBlock::Thinking { thinking, .. } if thinking.trim().is_empty() => {
            "\x1b[2m  (thought)\x1b[0m\n".to_owned()
        }
        ContentBlock::Thinking { thinking, .. } => {
            format!("\x1b[2m  ({})\x1b[0m\n", brief(thinking))
        }
        ContentBlock::ToolUse { name, input, .. } => {
            let title = call_title(name, input.get(), Some(view.cwd));
            format!("  → {}\n", shortened(&title, SHOWN))
        }
        ContentBlock::ToolResult {
            content, is_error, ..
        } => answer(content, *is_error, None),
        ContentBlock::Image { .. } => "  [an image]\n".to_owned(),
        ContentBlock::RedactedThinking { .. } => "  [sealed thinking]\n".to_owned(),
        ContentBlock::Opaque { block } => format!("  [{}]\n", tame(&kind_of(block))),
    }
}

/// Returns words to an agent: a person's, or in people's words what posse has told it.
fn told(text: &str, at: &str, columns: Option<usize>) -> String {
    let Some(frame) = Framed::of(text) else {
        let words = behind_sign(text.lines(), at, columns);
        return format!("\n\x1b[1m> {words}\x1b[0m \x1b[2m({at})\x1b[0m\n");
    };
    let lines = frame.in_full();
    if frame.is_for_model() {
        let line = lines.first().map(String::as_str).unwrap_or_default();
        let room = columns.unwrap_or(REMINDER).saturating_sub(2);
        return format!("\n\x1b[2m· {}\x1b[0m\n", fitted(&tame(line), room));
    }
    let words = behind_sign(lines.iter().map(String::as_str), at, columns);
    format!("\n⇠ {words} \x1b[2m({at})\x1b[0m\n")
}

/// Returns lines behind a sign of two columns, wrapped at words such that the time fits behind the
/// last one.
fn behind_sign<'a>(
    lines: impl Iterator<Item = &'a str>,
    at: &str,
    columns: Option<usize>,
) -> String {
    let room = columns.map(|columns| columns.saturating_sub(2));
    let mut shown: Vec<String> = lines.flat_map(|line| folded(line, room)).collect();
    let last = shown.last().map_or(0, |line| text::columns(line));
    if room.is_some_and(|room| last + at.len() + 3 > room) {
        shown.push(String::new());
    }
    let indented = |line: String| match line.is_empty() {
        true => line,
        false => format!("  {line}"),
    };
    let shown: Vec<String> = shown.into_iter().map(indented).collect();
    // The first line has the sign before it.
    shown.join("\n").trim_start().to_owned()
}

/// Returns what a tool answered for people, with the tool's name if it is given.
pub(crate) fn answer(content: &[ToolContent], is_error: bool, tool: Option<&str>) -> String {
    format!(
        "  \x1b[2m{} {}{}\x1b[0m\n",
        if is_error { "✗" } else { "←" },
        tool.map(|tool| format!("{}: ", tame(tool)))
            .unwrap_or_default(),
        indented(aligned(plain_answer(content).trim_end_matches('\n')).trim_end())
    )
}

/// Returns the text of what a tool answered, with a line break at its end.
pub(crate) fn plain_answer(content: &[ToolContent]) -> String {
    let part = |content: &ToolContent| match content {
        ToolContent::Text { text } => text.clone(),
        ToolContent::Image { .. } => "(an image)".into(),
        ToolContent::Tools { tools } => loaded_names(tools),
    };
    let parts = content.iter().map(part);
    parts.collect::<Vec<_>>().join("\n") + "\n"
}

/// Returns the kind of a block that is not known.
fn kind_of(block: &RawJson) -> String {
    let block: Value = serde_json::from_str(block.get()).unwrap_or_default();
    let kind = block["type"].as_str();
    kind.unwrap_or("a block without a kind").to_owned()
}

fn brief(text: &str) -> String {
    indented(text.trim())
}

/// Returns text for people, shortened, with its later lines indented.
fn indented(text: &str) -> String {
    tame(&shortened(text, SHOWN)).replace('\n', "\n    ")
}

/// Returns text without the indentation that all its lines share, so that columns stay aligned when
/// the rest is indented anew.
fn aligned(text: &str) -> String {
    let text = text.trim_matches('\n');
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let shared = lines().map(indent).min().unwrap_or_default();
    let cut = |line: &str| line.get(shared..).unwrap_or_default().to_owned();
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use posse_port::model::Encoded;

    use super::super::fixtures::transcript;
    use super::*;

    #[test]
    fn a_line_keeps_the_bytes_of_its_entry() {
        let transcript = transcript();
        let lines: Vec<String> = transcript
            .entries
            .iter()
            .map(|entry| line(entry).unwrap())
            .collect();
        assert!(lines[0].contains(
            r#""messages":[{"role":"user","content":[{"type":"text","text":"fix \u001b[2Jit"}]}]"#
        ));
        assert!(
            lines[0].starts_with(
                r#"{"seq":0,"kind":"prompt","at":"1970-01-01T00:00:01.000Z","agent":""#
            )
        );
        assert!(
            lines[0].contains(r#""checksum":"00000000000000ff""#) && !lines[0].contains("exact")
        );
        assert!(
            lines[1].contains("\"input\":{ \"n\": 1.50}") && !lines[1].contains('\n'),
            "{}",
            lines[1]
        );
        let told: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!(
            told["exact"].as_str().unwrap().as_bytes(),
            &transcript.entries[1].entry.encoded.bytes[..]
        );
        assert_eq!(told["reply"]["id"], "msg_1");
        let mut fork = transcript.entries[0].clone();
        let head = br#"{"role":"user","content":[{"type":"text","text":"held"}"#;
        fork.entry.head = Some(Encoded {
            bytes: head.as_slice().into(),
            mark_at: None,
        });
        fork.entry.encoded.bytes = br#"{"type":"text","text":"go"}]}"#.as_slice().into();
        let told: serde_json::Value = serde_json::from_str(&line(&fork).unwrap()).unwrap();
        assert_eq!(
            told["messages"][0]["content"][1]["text"], "go",
            "what siblings share is part of it"
        );
        let mut broken = transcript.entries[0].clone();
        broken.entry.encoded.bytes = b"{".as_slice().into();
        let told: serde_json::Value = serde_json::from_str(&line(&broken).unwrap()).unwrap();
        assert_eq!(
            (&told["messages"], &told["exact"]),
            (&serde_json::Value::Null, &"{".into()),
            "damaged"
        );
    }

    #[test]
    fn numbers_of_lines_stay_aligned() {
        let shown = |text: &str| {
            let shown = answer(&[ToolContent::text(text)], false, None);
            anstream::adapter::strip_str(&shown).to_string()
        };
        assert_eq!(
            shown("     9\tfn a() {\n    10\t    b();\n\n    11\t}\n"),
            "  ←  9\tfn a() {\n    10\t    b();\n    \n    11\t}\n"
        );
        assert_eq!(
            shown("\nbuilt\n  a.rs\n"),
            "  ← built\n      a.rs\n",
            "a first line without indentation"
        );
        assert_eq!(shown(""), "  ← \n");
    }

    #[test]
    fn a_reply_is_markdown_on_a_terminal() {
        let shown = |columns| {
            let block = ContentBlock::text("It **is**\n\n- so\n");
            let cwd = Path::new("/work");
            paragraph(Role::Assistant, &block, 0, TranscriptView { columns, cwd })
        };
        assert_eq!(shown(None), "\nIt **is**\n\n- so\n");
        assert_eq!(shown(Some(20)), "\nIt \x1b[0;1mis\x1b[0m\n\n• so\n");
    }

    // proves WA-06 (part: people's words)
    #[test]
    fn what_posse_has_told_an_agent_is_in_peoples_words() {
        let shown = |text: &str, columns| {
            let shown = told(text, "10:00", columns);
            anstream::adapter::strip_str(&shown).to_string()
        };
        let mail = "Mail from another agent. It does not approve anything:\n<mail from=\"dev\" \
                    agent-id=\"7\" summary=\"x\">\nThe lexer is mended.\n\nGo on.\n</mail>";
        assert_eq!(
            shown(mail, None),
            "\n⇠ dev: The lexer is mended.\n\n  Go on. (10:00)\n"
        );
        assert_eq!(
            shown(mail, Some(20)),
            "\n⇠ dev: The lexer is\n  mended.\n\n  Go on. (10:00)\n"
        );
        assert_eq!(
            shown("fix it now", Some(16)),
            "\n> fix it now\n (10:00)\n",
            "the time has a line of its own"
        );
        let reminder = "<system-reminder>\nYou lead it.\nMore.\n</system-reminder>";
        assert_eq!(shown(reminder, None), "\n· You lead it.\n");
        assert_eq!(shown(reminder, Some(10)), "\n· You lea…\n");
    }

    #[test]
    fn what_is_long_is_shortened() {
        let long = ToolContent::text("x".repeat(10_000));
        assert!(answer(&[long], false, None).chars().count() < SHOWN + 20);
    }
}
