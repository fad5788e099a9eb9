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
    /// True if a blank line ends it, whatever follows.
    pub(super) ends_at_blank: bool,
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
    /// A title with `#`, a quote or a rule: what begins a block wherever it stands.
    Marked,
    /// Anything else: what a line becomes may depend on lines before and after it.
    Text,
}

/// The parts of a text in order.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) units: Vec<Unit>,
    /// True if the text from the last part on has to be parsed by itself.
    pub(super) is_partial: bool,
}

impl Units {
    /// Finds the parts of a text.
    pub(super) fn of(source: &str) -> Self {
        let mut found = Self::default();
        let mut depth = 0usize;
        let mut end = 0;
        for (event, range) in Parser::new_ext(source, OPTIONS).into_offset_iter() {
            if matches!(event, Event::End(_)) {
                depth = depth.saturating_sub(1);
                continue;
            }
            let start = line_start(source, range.start);
            if depth == 0 {
                if found.continues_list(source) {
                    found.is_partial = true;
                    return found;
                }
                let kind = kind_of(&event, &source[start..]);
                let ends_at_blank = is_ended_by_blank(&event);
                let unit = Unit {
                    kind,
                    start,
                    ends_at_blank,
                };
                found.push(source, end, unit);
                if found.is_partial {
                    return found;
                }
                end = range.end;
            } else if depth == 1 && matches!(event, Event::Start(Tag::Item)) {
                found.push_item(start);
            }
            depth += usize::from(matches!(event, Event::Start(_)));
        }
        if let Some(start) = definitions(source, end, source.len()) {
            found.units.push(Unit::definitions(start));
        }
        found
    }

    /// Returns the number of parts that are final, whatever follows the text.
    pub(super) fn closed(&self, source: &str) -> usize {
        let is_open = !self.is_partial && self.continues_list(source);
        let is_ended = |last: &Unit| last.ends_at_blank && ends_with_blank_line(source);
        let open = match self.units.last() {
            _ if is_open => 2,
            Some(last) if !self.is_partial && is_ended(last) => 0,
            _ => 1,
        };
        self.units.len().saturating_sub(open)
    }

    /// Returns true if the part before the last is a list that may be longer than it seems.
    ///
    /// pulldown-cmark lets a list continue after definitions that stand between its items, and takes
    /// what follows them for another block than it does at the beginning of a text. So a list is not
    /// closed by definitions or by text that adjoins it, but by the next part only, and then the
    /// text after the list is parsed by itself.
    fn continues_list(&self, source: &str) -> bool {
        let [.., list, last] = &self.units[..] else {
            return false;
        };
        let is_unsure = match last.kind {
            UnitKind::Definitions => true,
            UnitKind::Text => !ends_with_blank_line(&source[..last.start]),
            _ => false,
        };
        matches!(list.kind, UnitKind::List { .. }) && is_unsure
    }

    /// Adds a part and the definitions between it and the end of the one before.
    fn push(&mut self, source: &str, end: usize, unit: Unit) {
        if let Some(start) = definitions(source, end, unit.start) {
            self.units.push(Unit::definitions(start));
            let adjoins = !ends_with_blank_line(&source[start..unit.start]);
            // A title of many lines is text until its end arrives: where the definition ends is
            // open.
            if unit.kind == UnitKind::Text && adjoins {
                return;
            }
            if self.continues_list(source) {
                self.is_partial = true;
                return;
            }
        }
        self.units.push(unit);
    }

    fn push_item(&mut self, start: usize) {
        let last = self.units.last_mut().map(|unit| &mut unit.kind);
        if let Some(UnitKind::List { items, .. }) = last {
            items.push(start);
        }
    }
}

impl Unit {
    /// Link reference definitions. What follows may belong to a title.
    fn definitions(start: usize) -> Self {
        Self {
            kind: UnitKind::Definitions,
            start,
            ends_at_blank: false,
        }
    }
}

/// Returns true for paragraphs, titles, tables and rules.
fn is_ended_by_blank(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Table(_)) | Event::Rule
    )
}

fn kind_of(event: &Event<'_>, source: &str) -> UnitKind {
    match event {
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => UnitKind::Fence,
        Event::Start(Tag::List(number)) => UnitKind::List {
            number: *number,
            items: Vec::new(),
        },
        Event::Start(Tag::BlockQuote(_)) | Event::Rule => UnitKind::Marked,
        Event::Start(Tag::Heading { .. }) if source.trim_start().starts_with('#') => {
            UnitKind::Marked
        }
        _ => UnitKind::Text,
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
