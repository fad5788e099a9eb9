//! An entry of a transcript as lines, and as it was written.

use posse_protocol::{ContentBlock, Entry, EntryKind, ToolContent};
use ratatui_core::style::Style;
use ratatui_core::text::Line;

use crate::conversation::calls::Calls;
use crate::conversation::transcript::{ShownOutput, other, with_output};
use crate::text::{line_count, render, tame, without_escapes, wrap_hard};

/// Number of lines of a tool's output that are shown at most.
const OUTPUT_LINES: usize = 5000;

/// What is shown in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Folds {
    /// True if what the model thought is shown.
    pub(super) shows_thinking: bool,
    /// True if all of what tools answered is shown.
    pub(super) shows_results: bool,
}

impl Folds {
    pub(super) fn all_shown() -> Self {
        Self {
            shows_thinking: true,
            shows_results: true,
        }
    }
}

/// Returns the lines of an entry. `calls` are those whose results it may have.
pub(super) fn rendered(
    entry: &Entry,
    calls: &mut Calls,
    folds: Folds,
    width: u16,
) -> Vec<Line<'static>> {
    let lines = match entry.kind {
        EntryKind::Reply => reply(entry, folds, width),
        EntryKind::Results if folds.shows_results => {
            with_output(entry, calls, ShownOutput::Most(OUTPUT_LINES), width)
        }
        EntryKind::Compaction => {
            let mut lines = other(entry, calls, width);
            lines.extend(texts(entry).flat_map(|text| render(text, width)));
            lines
        }
        EntryKind::Results | EntryKind::Prompt | EntryKind::Model => other(entry, calls, width),
    };
    // Nothing is cut off: a pager cannot be scrolled to the side.
    let lines = lines.iter();
    lines.flat_map(|line| wrap_hard(line, width)).collect()
}

fn reply(entry: &Entry, folds: Folds, width: u16) -> Vec<Line<'static>> {
    let dim = Style::new().dim();
    let mut lines = Vec::new();
    for block in &entry.message.content {
        match block {
            ContentBlock::Text { text } if text.trim().is_empty() => {}
            ContentBlock::Text { text } => {
                lines.push(Line::default());
                lines.extend(render(&without_escapes(text), width));
            }
            ContentBlock::Thinking { thinking, .. } if thinking.trim().is_empty() => {}
            ContentBlock::Thinking { thinking, .. } => {
                lines.push(Line::default());
                let text = tame(thinking.trim());
                let count = line_count(text.lines().count() as u64);
                lines.push(Line::styled(format!("∴ thinking, {count}"), dim));
                if folds.shows_thinking {
                    let words = text.lines().map(|line| format!("  {line}"));
                    lines.extend(words.map(|line| Line::styled(line, dim.italic())));
                }
            }
            ContentBlock::RedactedThinking { .. } => {
                lines.push(Line::default());
                lines.push(Line::styled(
                    "∴ thinking that only the provider can read",
                    dim,
                ));
            }
            // Calls are shown with what they answered.
            _ => {}
        }
    }
    lines
}

fn texts(entry: &Entry) -> impl Iterator<Item = &str> {
    entry
        .message
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        })
}

/// Returns what an entry says, as it was written.
pub(super) fn source(entry: &Entry) -> String {
    let blocks = entry.message.content.iter();
    let parts = blocks.flat_map(|block| match block {
        ContentBlock::Text { text } => vec![text.as_str()],
        ContentBlock::ToolUse { input, .. } => vec![input.get()],
        ContentBlock::ToolResult { content, .. } => {
            let texts = content.iter().filter_map(|content| match content {
                ToolContent::Text { text } => Some(text.as_str()),
                ToolContent::Image { .. } | ToolContent::Tools { .. } => None,
            });
            texts.collect()
        }
        _ => Vec::new(),
    });
    parts.collect::<Vec<_>>().join("\n\n")
}
