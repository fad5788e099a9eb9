//! Entries of a transcript as lines that are printed once.

use std::borrow::Cow;

use posse_protocol::content::loaded_names;
use posse_protocol::{ContentBlock, Entry, EntryKind, Role, ToolContent};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use super::call_title::call_title;
use super::calls::{Calls, KnownCall};
use super::framed::Framed;
use crate::text::{ChangedPlace, clip, line_count, one_line, replaced, shortened, tame, wrap};
use crate::theme::ColorRole;

/// Number of lines that are printed of a tool's output; the pager has the rest.
const OUTPUT_LINES: usize = 4;
/// Number of lines that are printed of a change.
const DIFF_LINES: usize = 24;

/// How much of what a tool printed or changed is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownOutput {
    /// The first lines.
    Short,
    /// At most this many lines.
    Most(usize),
}

/// Returns an entry that is no reply.
pub(crate) fn other(entry: &Entry, calls: &mut Calls, width: u16) -> Vec<Line<'static>> {
    with_output(entry, calls, ShownOutput::Short, width)
}

/// Returns an entry that is no reply, with so much of what tools have printed.
pub(crate) fn with_output(
    entry: &Entry,
    calls: &mut Calls,
    shown: ShownOutput,
    width: u16,
) -> Vec<Line<'static>> {
    let blocks = &entry.message.content;
    match entry.kind {
        EntryKind::Prompt => {
            // Images that were put in here are named in the text.
            let is_named = texts(blocks).any(|text| text.contains("[image "));
            let is_shown =
                |block: &&ContentBlock| !is_named || !matches!(block, ContentBlock::Image { .. });
            let blocks = blocks.iter().filter(is_shown);
            blocks.flat_map(|block| prompt(block, width)).collect()
        }
        EntryKind::Results => blocks
            .iter()
            .flat_map(|block| match block {
                ContentBlock::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => {
                    let call = calls.take(tool_use_id);
                    result(call, (content, *is_error), shown, width)
                }
                // Words that joined the run at this boundary.
                block => prompt(block, width),
            })
            .collect(),
        EntryKind::Compaction => vec![
            Line::default(),
            Line::styled(
                "── the conversation before this line was summarised ──",
                Style::new().dim(),
            ),
        ],
        EntryKind::Model => {
            let words: String = texts(blocks).collect();
            vec![Line::styled(one_line(&words), Style::new().dim())]
        }
        EntryKind::Reply => Vec::new(),
    }
}

/// Returns the blocks of text of a reply.
pub(crate) fn reply_texts(entry: &Entry) -> Vec<&str> {
    match entry.message.role {
        Role::Assistant => texts(&entry.message.content).collect(),
        Role::User => Vec::new(),
    }
}

fn texts(blocks: &[ContentBlock]) -> impl Iterator<Item = &str> {
    blocks.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    })
}

/// Returns what a person said to the agent with an entry; none if it says only what posse wrote.
pub fn person_words(entry: &Entry) -> Option<String> {
    if entry.kind != EntryKind::Prompt {
        return None;
    }
    let words: Vec<&str> = texts(&entry.message.content)
        .filter(|text| Framed::of(text).is_none())
        .collect();
    let words = words.join("\n");
    Some(words.trim_end().to_owned()).filter(|words| !words.trim().is_empty())
}

/// Notes the calls that a reply asks for.
pub(crate) fn note_calls(entry: &Entry, calls: &mut Calls) {
    for block in &entry.message.content {
        if let ContentBlock::ToolUse { id, name, input } = block {
            calls.asked(id, name, Some(input));
        }
    }
}

/// Returns words to the agent.
fn prompt(block: &ContentBlock, width: u16) -> Vec<Line<'static>> {
    let text = match block {
        ContentBlock::Text { text } => text.trim_end(),
        ContentBlock::Image { .. } => "[image]",
        _ => return Vec::new(),
    };
    if let Some(frame) = Framed::of(text) {
        return frame.lines();
    }
    let sign = ColorRole::Accent.style().bold();
    let mut lines = vec![Line::default()];
    for (number, line) in tame(text).lines().enumerate() {
        let sign = Span::styled(if number == 0 { "› " } else { "  " }, sign);
        let words = Span::styled(line.to_owned(), Style::new().bold());
        lines.extend(wrap(&Line::from(vec![sign, words]), width, 2));
    }
    lines
}

/// Returns a call and what it answered.
fn result(
    call: Option<KnownCall>,
    (content, is_error): (&[ToolContent], bool),
    shown: ShownOutput,
    width: u16,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default()];
    lines.push(call_head(call.as_ref(), is_error));
    lines.extend(answer(call.as_ref(), (content, is_error), shown, width));
    lines
}

/// Returns what a call does, and whether it failed: in one line, which a person can copy.
pub(crate) fn call_head(call: Option<&KnownCall>, is_error: bool) -> Line<'static> {
    let (sign, role) = match is_error {
        true => ("✗ ", ColorRole::Bad),
        false => ("● ", ColorRole::Good),
    };
    let tool = one_line(call.map_or("", |call| call.tool.as_str()));
    let title = call.map_or_else(String::new, title);
    // Most titles begin with what is done.
    let (name, rest) = match title.strip_prefix(&tool) {
        Some(rest) => (tool, rest.to_owned()),
        None if title.starts_with("$ ") => (String::new(), title),
        None => (tool, format!("  {title}")),
    };
    Line::from(vec![
        Span::styled(sign, role.style()),
        Span::styled(name, Style::new().bold()),
        Span::raw(rest),
    ])
}

/// Returns what a call answered, or the change that it has made.
pub(crate) fn answer(
    call: Option<&KnownCall>,
    (content, is_error): (&[ToolContent], bool),
    shown: ShownOutput,
    width: u16,
) -> Vec<Line<'static>> {
    let tool = call.map_or("", |call| call.tool.as_str());
    let (most, most_changed) = match shown {
        ShownOutput::Short => (shown_lines(tool, is_error), DIFF_LINES),
        ShownOutput::Most(lines) => (lines, lines),
    };
    match call.and_then(|call| change(call, content)) {
        Some(change) if !is_error => crate::text::diff(&change, most_changed),
        _ => output(content, most, width),
    }
}

/// Returns how many lines of a tool's output are printed.
fn shown_lines(tool: &str, is_error: bool) -> usize {
    match tool {
        _ if is_error => OUTPUT_LINES,
        // What follows is for the model.
        "Agent" | "SendMessage" | "TaskOutput" | "Skill" | "TeamCreate" => 1,
        "Read" => 0,
        _ => OUTPUT_LINES,
    }
}

/// Returns what a call does, in a line.
fn title(call: &KnownCall) -> String {
    if let Some(title) = &call.title {
        return one_line(title);
    }
    let input = call.input.as_ref().map_or("", |input| input.get());
    call_title(&call.tool, input, None)
}

/// Returns true if the change that a call makes is printed, and not its output.
pub(crate) fn is_change(call: &KnownCall) -> bool {
    change(call, &[]).is_some()
}

/// Returns the change that a call to Edit has made: as the person saw it before, or from its input and
/// what the tool answered.
fn change(call: &KnownCall, content: &[ToolContent]) -> Option<posse_protocol::FileDiff> {
    if call.tool != "Edit" {
        return None;
    }
    if call.change.is_some() {
        return call.change.clone();
    }
    let input: Value = serde_json::from_str(call.input.as_ref()?.get()).ok()?;
    let word = |key: &str| input.get(key).and_then(Value::as_str);
    let new = word("new_string")?;
    let place = content.iter().find_map(|content| match content {
        ToolContent::Text { text } => ChangedPlace::of(text, new),
        ToolContent::Image { .. } | ToolContent::Tools { .. } => None,
    });
    Some(replaced(
        word("file_path")?,
        word("old_string")?,
        new,
        place,
    ))
}

/// Returns the first lines of an output.
fn output(content: &[ToolContent], most: usize, width: u16) -> Vec<Line<'static>> {
    let texts: Vec<Cow<'_, str>> = content
        .iter()
        .map(|content| match content {
            ToolContent::Text { text } => text.into(),
            ToolContent::Image { .. } => "[image]".into(),
            ToolContent::Tools { tools } => loaded_names(tools).into(),
        })
        .collect();
    let text = texts.join("\n");
    match most {
        0 => {
            let count = text.trim_end().lines().count();
            let count = line_count(count as u64);
            vec![Line::styled(format!("  {count}"), Style::new().dim())]
        }
        // A model's words are cut off, those of a command are not.
        1 => {
            let line = text.lines().next().unwrap_or_default();
            let line = Line::styled(format!("  {}", one_line(line)), Style::new().dim());
            vec![clip(&line, width)]
        }
        most => shortened(&text, most),
    }
}
