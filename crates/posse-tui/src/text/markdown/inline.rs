//! What stands inside a paragraph, a heading or a cell: styled words.

use pulldown_cmark::{Event, Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::text::tame::{is_zero_width, one_line, tame};
use crate::theme::ColorRole;

/// Words that are being collected.
pub(super) struct Inline {
    pieces: Vec<(String, Style)>,
    styles: Vec<Style>,
    links: Vec<Link>,
}

/// A link that is open.
struct Link {
    url: String,
    shown: String,
}

impl Inline {
    /// Begins with no words. All that come have at least the given style.
    pub(super) fn new(style: Style) -> Self {
        Self {
            pieces: Vec::new(),
            styles: vec![style],
            links: Vec::new(),
        }
    }

    /// Adds what an event brings. Events that are no business of words are ignored.
    pub(super) fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(text) => self.push(&text, self.style().fg(ColorRole::Code.color())),
            Event::SoftBreak => self.push(" ", self.style()),
            Event::HardBreak => self.push("\n", self.style()),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.push(&text, self.style());
            }
            _ => {}
        }
    }

    /// Returns the words as lines, tamed, one for each hard break.
    pub(super) fn into_lines(self) -> Vec<Line<'static>> {
        let mut lines = vec![Line::default()];
        for (text, style) in &self.pieces {
            for (index, text) in tame(text).split('\n').enumerate() {
                if index > 0 {
                    lines.push(Line::default());
                }
                if let Some(line) = lines.last_mut()
                    && !text.is_empty()
                {
                    line.spans.push(Span::styled(text.to_owned(), *style));
                }
            }
        }
        lines
    }

    /// Returns the words as one line.
    pub(super) fn into_line(self) -> Line<'static> {
        let mut whole = Line::default();
        for line in self.into_lines() {
            if !whole.spans.is_empty() {
                whole.spans.push(Span::raw(" "));
            }
            whole.spans.extend(line.spans);
        }
        whole
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn start(&mut self, tag: Tag<'_>) {
        let style = self.style();
        match tag {
            Tag::Emphasis => self.styles.push(style.italic()),
            Tag::Strong => self.styles.push(style.bold()),
            Tag::Strikethrough => self.styles.push(style.crossed_out()),
            Tag::Link { dest_url, .. } => self.links.push(Link {
                url: one_line(&dest_url),
                shown: String::new(),
            }),
            Tag::Image { .. } => self.push("[image: ", style),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Image => self.push("]", self.style()),
            TagEnd::Link => {
                let Some(link) = self.links.pop() else { return };
                let names_it = link.url == link.shown
                    || link.url.strip_prefix("mailto:") == Some(link.shown.as_str());
                if link.shown.is_empty() {
                    self.push(&link.url, self.style().dim());
                } else if !names_it && !link.url.is_empty() {
                    self.push(&format!(" ({})", link.url), self.style().dim());
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        for link in &mut self.links {
            link.shown.push_str(text);
        }
        // Marks that combine belong to the letter before them, where taming counts them.
        let rest = text.trim_start_matches(is_zero_width);
        match self.pieces.last_mut() {
            Some((last, last_style)) if *last_style == style => last.push_str(text),
            Some((last, _)) => {
                last.push_str(&text[..text.len() - rest.len()]);
                self.pieces.push((rest.to_owned(), style));
            }
            None => self.pieces.push((text.to_owned(), style)),
        }
    }
}
