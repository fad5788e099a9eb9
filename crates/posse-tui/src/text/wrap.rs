//! Lines that fit a width: wrapped at words or clipped.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Returns the columns that a text takes on a terminal.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Wraps a line at words. Continuation lines begin with `hang` blanks.
///
/// Styles are kept and graphemes never split. A word longer than the width is broken, but a URL or
/// a path stays whole: the terminal wraps it, and a person copies it in one piece.
pub fn wrap(line: &Line<'_>, width: u16, hang: u16) -> Vec<Line<'static>> {
    fit(line, width, hang, LongWords::KeepAddresses)
}

/// Wraps a line at words and breaks every word that is longer than the width.
pub(crate) fn wrap_hard(line: &Line<'_>, width: u16) -> Vec<Line<'static>> {
    fit(line, width, 0, LongWords::Break)
}

/// Returns the line if it fits the width, else its beginning and `…`.
pub fn clip(line: &Line<'_>, width: u16) -> Line<'static> {
    let width = usize::from(width);
    if line.width() <= width {
        return owned(line);
    }
    let mut clipped = Builder::default();
    let Some(room) = width.checked_sub(1) else {
        return clipped.take(line);
    };
    let text = text_of(line);
    let mut used = 0;
    for cell in cells(line, &text) {
        used += cell.columns;
        if used > room {
            clipped.push("…", cell.style);
            break;
        }
        clipped.push(cell.text, cell.style);
    }
    clipped.take(line)
}

/// What happens to a word that is longer than the width.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LongWords {
    Break,
    KeepAddresses,
}

/// A grapheme with its style.
#[derive(Clone, Copy)]
struct Cell<'a> {
    text: &'a str,
    style: Style,
    columns: usize,
}

impl Cell<'_> {
    fn is_blank(&self) -> bool {
        self.text == " "
    }

    /// Returns true if lines may break on both sides, as between ideographs.
    fn is_ideograph(&self) -> bool {
        self.columns == 2 && self.text >= "\u{2e80}"
    }

    /// Returns true for punctuation that must not begin a line.
    fn closes(&self) -> bool {
        let first = self.text.chars().next();
        first.is_some_and(|first| "、。，．：；？！）」』】〉》〕”’…ー々".contains(first))
    }
}

fn fit(line: &Line<'_>, width: u16, hang: u16, long: LongWords) -> Vec<Line<'static>> {
    let width = usize::from(width.max(1));
    if line.width() <= width {
        return vec![owned(line)];
    }
    let hang = usize::from(hang).min(width / 2);
    let text = text_of(line);
    let cells = cells(line, &text);
    let mut lines = Vec::new();
    let mut current = Builder::default();
    let mut rest = &cells[..];
    loop {
        let (blanks, word) = next_word(rest);
        rest = &rest[blanks.len() + word.len()..];
        if word.is_empty() {
            break;
        }
        let length: usize = word.iter().map(|cell| cell.columns).sum();
        if current.columns + blanks.len() + length > width && !current.is_fresh {
            lines.push(current.take(line));
            current.indent(hang);
        } else {
            current.extend(blanks);
        }
        let whole = length <= width.saturating_sub(current.columns)
            || (long == LongWords::KeepAddresses && is_address(word));
        for cell in word {
            if !whole && current.columns + cell.columns > width && !current.is_fresh {
                lines.push(current.take(line));
                current.indent(hang);
            }
            current.push_cell(cell);
        }
    }
    lines.push(current.take(line));
    lines
}

/// Returns the blanks at the beginning and the word after them.
fn next_word<'a, 'b>(cells: &'a [Cell<'b>]) -> (&'a [Cell<'b>], &'a [Cell<'b>]) {
    let start = cells
        .iter()
        .position(|cell| !cell.is_blank())
        .unwrap_or(cells.len());
    let (blanks, rest) = cells.split_at(start);
    let end = rest
        .windows(2)
        .position(|pair| {
            let may_break = pair[0].is_ideograph() || pair[1].is_ideograph();
            pair[1].is_blank() || (may_break && !pair[1].closes())
        })
        .map_or(rest.len(), |end| end + 1);
    (blanks, &rest[..end])
}

/// Returns true for a URL or a path of files.
fn is_address(word: &[Cell<'_>]) -> bool {
    let text: String = word.iter().map(|cell| cell.text).collect();
    let is_path_character =
        |character: char| character.is_alphanumeric() || "/._-~:@%#()[]`'\",$".contains(character);
    text.contains("://") || (text.contains('/') && text.chars().all(is_path_character))
}

fn text_of(line: &Line<'_>) -> String {
    line.spans
        .iter()
        .map(|span| span.content.as_ref())
        .collect()
}

/// Splits the text of a line into graphemes, each with the style of the span it begins in.
fn cells<'a>(line: &Line<'_>, text: &'a str) -> Vec<Cell<'a>> {
    let mut ends = line.spans.iter().scan(0, |end, span| {
        *end += span.content.len();
        Some((*end, span.style))
    });
    let mut span = ends.next();
    let mut cell = |at: usize, text: &'a str, columns: usize| {
        while span.is_some_and(|(end, _)| end <= at) {
            span = ends.next();
        }
        let style = span.map_or(Style::new(), |(_, style)| style);
        Cell {
            text,
            style,
            columns,
        }
    };
    // Most text is ASCII, where finding graphemes and their widths costs more than all the rest.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return (0..text.len())
            .map(|at| cell(at, &text[at..=at], 1))
            .collect();
    }
    text.grapheme_indices(true)
        .map(|(at, grapheme)| cell(at, grapheme, columns(grapheme)))
        .collect()
}

fn owned(line: &Line<'_>) -> Line<'static> {
    let spans = line
        .spans
        .iter()
        .map(|span| Span::styled(span.content.to_string(), span.style));
    Line {
        spans: spans.collect(),
        style: line.style,
        alignment: line.alignment,
    }
}

/// A line that is being put together.
struct Builder {
    spans: Vec<Span<'static>>,
    text: String,
    style: Style,
    columns: usize,
    /// True while the line has nothing but its indent.
    is_fresh: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            spans: Vec::new(),
            text: String::new(),
            style: Style::new(),
            columns: 0,
            is_fresh: true,
        }
    }
}

impl Builder {
    fn push(&mut self, text: &str, style: Style) {
        if style != self.style {
            self.end_span();
            self.style = style;
        }
        self.text.push_str(text);
    }

    fn push_cell(&mut self, cell: &Cell<'_>) {
        self.push(cell.text, cell.style);
        self.columns += cell.columns;
        self.is_fresh = false;
    }

    fn extend(&mut self, cells: &[Cell<'_>]) {
        for cell in cells {
            self.push(cell.text, cell.style);
            self.columns += cell.columns;
        }
    }

    fn indent(&mut self, hang: usize) {
        if hang > 0 {
            self.push(&" ".repeat(hang), Style::new());
            self.columns = hang;
        }
    }

    fn end_span(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.spans.push(Span::styled(text, self.style));
        }
    }

    /// Returns the line, with the line style of `like`, and begins the next one.
    fn take(&mut self, like: &Line<'_>) -> Line<'static> {
        self.end_span();
        let spans = std::mem::take(self).spans;
        Line {
            spans,
            style: like.style,
            alignment: like.alignment,
        }
    }
}

#[cfg(test)]
mod tests;
