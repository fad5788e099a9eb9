//! Renders the source of one block, with all that is nested in it.
//!
//! Nesting is a stack of frames, not recursion: a hostile text nests thousands of quotes.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::inline::Inline;
use super::table::Table;
use super::units::{OPTIONS, line_start};
use crate::text::code::code_line;
use crate::text::tame::tame;
use crate::text::wrap::{columns, wrap};

/// Renders a block. `number` replaces the first number if the block is an ordered list.
pub(super) fn render(source: &str, number: Option<u64>, width: u16) -> Vec<Line<'static>> {
    let mut renderer = Renderer::new(source, number, width);
    for (event, range) in Parser::new_ext(source, OPTIONS).into_offset_iter() {
        renderer.event(event, &range);
    }
    renderer.flush();
    renderer.lines
}

/// Renders text without Markdown, line by line.
pub(super) fn literal(source: &str, width: u16) -> Vec<Line<'static>> {
    let text = tame(source.trim_end());
    let lines = text.split('\n').filter(|line| !line.trim().is_empty());
    lines
        .flat_map(|line| wrap(&Line::raw(line), width, 0))
        .collect()
}

/// Something that lines are nested in.
enum Nesting {
    Quote,
    Item {
        marker: String,
        /// True as long as no line shows the marker.
        is_fresh: bool,
    },
}

impl Nesting {
    fn columns(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::Item { marker, .. } => columns(marker),
        }
    }
}

/// A leaf whose text is collected as it is.
enum Verbatim {
    Code { language: String, text: String },
    Html { text: String },
}

struct Renderer<'a> {
    source: &'a str,
    width: u16,
    number: Option<u64>,
    frames: Vec<Nesting>,
    /// The next number of each open list.
    lists: Vec<Option<u64>>,
    inline: Option<Inline>,
    verbatim: Option<Verbatim>,
    table: Option<Table>,
    /// The line of the source before which a blank line was shown.
    gap_at: usize,
    lines: Vec<Line<'static>>,
}

impl<'a> Renderer<'a> {
    fn new(source: &'a str, number: Option<u64>, width: u16) -> Self {
        Self {
            source,
            width,
            number,
            frames: Vec::new(),
            lists: Vec::new(),
            inline: None,
            verbatim: None,
            table: None,
            gap_at: 0,
            lines: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
        match (event, &mut self.verbatim) {
            (
                Event::Text(more) | Event::Html(more),
                Some(Verbatim::Code { text, .. } | Verbatim::Html { text }),
            ) => text.push_str(&more),
            (Event::Start(tag), _) if is_block(&tag) => self.start(tag, range),
            (Event::End(tag), _) if is_block_end(tag) => self.end(tag),
            (Event::Rule, _) => {
                self.flush();
                self.gap(range);
                self.emit(vec![Line::from(Span::styled("───", Style::new().dim()))]);
            }
            (Event::TaskListMarker(is_done), _) => {
                let boxed = if is_done { "[x] " } else { "[ ] " };
                if let Some(Nesting::Item { marker, .. }) = self.frames.last_mut() {
                    *marker = boxed.to_owned();
                }
            }
            (event, _) => {
                let words = self.inline.get_or_insert_with(|| Inline::new(Style::new()));
                words.add(event);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        if !matches!(tag, Tag::TableHead | Tag::TableRow | Tag::TableCell) {
            self.flush();
            self.gap(range);
        }
        match tag {
            Tag::BlockQuote(_) => self.frames.push(Nesting::Quote),
            Tag::List(number) if self.lists.is_empty() => {
                self.lists
                    .push(number.map(|number| self.number.unwrap_or(number)));
            }
            Tag::List(number) => self.lists.push(number),
            Tag::Item => {
                let number = self.lists.last_mut().and_then(Option::as_mut);
                let marker = number.map_or("• ".to_owned(), |number| {
                    let marker = format!("{number}. ");
                    *number = number.saturating_add(1);
                    marker
                });
                self.frames.push(Nesting::Item {
                    marker,
                    is_fresh: true,
                });
            }
            Tag::Heading { level, .. } => self.inline = Some(Inline::new(heading(level))),
            Tag::CodeBlock(kind) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next(),
                    CodeBlockKind::Indented => None,
                };
                self.verbatim = Some(Verbatim::Code {
                    language: language.unwrap_or_default().to_owned(),
                    text: String::new(),
                });
            }
            Tag::HtmlBlock => {
                self.verbatim = Some(Verbatim::Html {
                    text: String::new(),
                })
            }
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::TableCell => {
                let is_head = self.table.as_ref().is_some_and(Table::is_in_head);
                let style = if is_head {
                    Style::new().bold()
                } else {
                    Style::new()
                };
                self.inline = Some(Inline::new(style));
            }
            _ => self.inline = Some(Inline::new(Style::new())),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::TableCell => {
                if let (Some(words), Some(table)) = (self.inline.take(), &mut self.table) {
                    table.push(words.into_line());
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                self.emit(table.lines(self.content_width()));
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.frames.pop();
            }
            TagEnd::Item => {
                self.flush();
                if let Some(Nesting::Item { is_fresh: true, .. }) = self.frames.last() {
                    self.emit(vec![Line::default()]);
                }
                self.frames.pop();
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                let lines = match self.verbatim.take() {
                    Some(Verbatim::Code { language, text }) => code(&text, &language),
                    Some(Verbatim::Html { text }) => literal(&text, self.content_width()),
                    None => Vec::new(),
                };
                self.emit(lines);
            }
            _ => self.flush(),
        }
    }

    /// Emits the words that were collected.
    fn flush(&mut self) {
        let Some(words) = self.inline.take() else {
            return;
        };
        let width = self.content_width();
        let lines = words.into_lines();
        let shown = lines.iter().flat_map(|line| wrap(line, width, 0)).collect();
        self.emit(shown);
    }

    /// Shows a blank line if there is one in the source before the block at the range.
    fn gap(&mut self, range: &Range<usize>) {
        let start = line_start(self.source, range.start);
        let Some(before) = self.source[..start].strip_suffix('\n') else {
            return;
        };
        let line = &before[line_start(before, before.len())..];
        let is_blank = line.chars().all(|character| " \t>".contains(character));
        if is_blank && start > self.gap_at && !self.lines.is_empty() {
            self.gap_at = start;
            let prefix: String = self
                .shown_frames()
                .map(|frame| match frame {
                    Nesting::Quote => "│ ".to_owned(),
                    Nesting::Item { marker, .. } => " ".repeat(columns(marker)),
                })
                .collect();
            let prefix = prefix.trim_end().to_owned();
            self.lines
                .push(Line::from(Span::styled(prefix, Style::new().dim())));
        }
    }

    /// Adds lines behind the marks of what they are nested in.
    fn emit(&mut self, lines: Vec<Line<'static>>) {
        for line in lines {
            let shown = self.shown_frames().count();
            let mut spans = Vec::with_capacity(shown + line.spans.len());
            for (index, frame) in self.frames.iter_mut().enumerate() {
                let span = match frame {
                    Nesting::Quote => Span::styled("│ ", Style::new().dim()),
                    Nesting::Item { marker, is_fresh } => {
                        let blanks = || " ".repeat(columns(marker));
                        let is_first = std::mem::take(is_fresh);
                        Span::raw(if is_first { marker.clone() } else { blanks() })
                    }
                };
                if index < shown {
                    spans.push(span);
                }
            }
            spans.extend(line.spans);
            self.lines.push(Line::from(spans));
        }
    }

    /// Returns the frames that leave half of the width for text. Deeper ones are not shown.
    fn shown_frames(&self) -> impl Iterator<Item = &Nesting> {
        let most = usize::from(self.width / 2);
        let mut used = 0;
        self.frames.iter().take_while(move |frame| {
            used += frame.columns();
            used <= most
        })
    }

    fn content_width(&self) -> u16 {
        let used: usize = self.shown_frames().map(Nesting::columns).sum();
        self.width
            .saturating_sub(u16::try_from(used).unwrap_or(u16::MAX))
    }
}

fn heading(level: HeadingLevel) -> Style {
    match level {
        HeadingLevel::H1 => Style::new().bold().underlined(),
        _ => Style::new().bold(),
    }
}

fn code(text: &str, language: &str) -> Vec<Line<'static>> {
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    if text.is_empty() {
        return Vec::new();
    }
    lines.map(|line| code_line(line, language)).collect()
}

/// Returns true for tags that are not part of words.
fn is_block(tag: &Tag<'_>) -> bool {
    is_block_end(tag.to_end())
}

fn is_block_end(tag: TagEnd) -> bool {
    !matches!(
        tag,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}
