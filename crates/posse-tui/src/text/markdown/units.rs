//! Where the top-level parts of a Markdown text begin.
//!
//! Only starts are told: a part ends where the next one begins. All parts but the last are final,
//! whatever follows the text.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// What pulldown-cmark is asked to recognise.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// A top-level part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    /// The byte at which its first line begins.
    pub(super) start: usize,
}

/// What a part needs beside being rendered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// Code between fences.
    Fence,
    /// A list.
    List {
        /// The number of the first item if the list is ordered.
        number: Option<u64>,
        /// The bytes at which the lines of its items begin.
        items: Vec<usize>,
    },
    /// Link reference definitions, which Markdown hides and we show as they are.
    Definitions,
    /// A paragraph, a table, or a heading that is underlined: what lines of text may become.
    Text,
    /// Anything else.
    Other,
}

/// Returns the parts of a text in order.
pub(super) fn units(source: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut depth = 0usize;
    let mut end = 0;
    for (event, range) in Parser::new_ext(source, OPTIONS).into_offset_iter() {
        if matches!(event, Event::End(_)) {
            depth = depth.saturating_sub(1);
            continue;
        }
        let start = line_start(source, range.start);
        if depth == 0 {
            let kind = kind_of(&event, &source[start..]);
            push(&mut units, source, end, Unit { kind, start });
            end = range.end;
        } else if depth == 1
            && matches!(event, Event::Start(Tag::Item))
            && let Some(UnitKind::List { items, .. }) = units.last_mut().map(|unit| &mut unit.kind)
        {
            items.push(start);
        }
        depth += usize::from(matches!(event, Event::Start(_)));
    }
    if let Some(start) = definitions(source, end, source.len()) {
        units.push(Unit {
            kind: UnitKind::Definitions,
            start,
        });
    }
    units
}

/// Returns true if the parts end with a list that may continue.
///
/// pulldown-cmark lets a list continue after definitions that stand between its items, so that they
/// do not close it.
pub(super) fn end_with_open_list(units: &[Unit]) -> bool {
    let [.., list, last] = units else {
        return false;
    };
    matches!(list.kind, UnitKind::List { .. }) && last.kind == UnitKind::Definitions
}

/// Adds a part and the definitions between it and the end of the one before.
fn push(units: &mut Vec<Unit>, source: &str, end: usize, unit: Unit) {
    if let Some(start) = definitions(source, end, unit.start) {
        units.push(Unit {
            kind: UnitKind::Definitions,
            start,
        });
        let adjoins = !ends_with_blank_line(&source[start..unit.start]);
        // A title of many lines is text until its end arrives: where the definition ends is open.
        if unit.kind == UnitKind::Text && adjoins {
            return;
        }
    }
    units.push(unit);
}

fn kind_of(event: &Event<'_>, source: &str) -> UnitKind {
    match event {
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => UnitKind::Fence,
        Event::Start(Tag::List(number)) => UnitKind::List {
            number: *number,
            items: Vec::new(),
        },
        Event::Start(Tag::Paragraph | Tag::Table(_)) => UnitKind::Text,
        Event::Start(Tag::Heading { .. }) if !source.trim_start().starts_with('#') => {
            UnitKind::Text
        }
        _ => UnitKind::Other,
    }
}

/// Returns where definitions begin that stand between two parts.
fn definitions(source: &str, from: usize, to: usize) -> Option<usize> {
    let between = source.get(from..to)?;
    let text = between.trim_start();
    let start = line_start(source, to - text.len());
    (text.starts_with('[') && start >= from).then_some(start)
}

/// Returns the beginning of the line that a byte is in.
pub(super) fn line_start(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns true if a line has no text.
pub(super) fn is_blank(line: &str) -> bool {
    line.bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\n'))
}

/// Returns true if the last line of the text is complete and blank.
pub(super) fn ends_with_blank_line(text: &str) -> bool {
    let Some(text) = text.strip_suffix('\n') else {
        return false;
    };
    is_blank(&text[line_start(text, text.len())..])
}
