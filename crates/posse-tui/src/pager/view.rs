//! The screen of a pager: whose transcript it is, its lines, and the keys.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Position;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{Pager, scroll};
use crate::conversation::edited_rows;
use crate::terminal::region;
use crate::text::{clip, columns};
use crate::theme::ColorRole;

/// The narrowest screen that is drawn for.
const NARROWEST: u16 = 4;

/// The keys, those that are needed most first.
const KEYS: [(&str, &str); 7] = [
    ("q", "leave"),
    ("/", "search"),
    ("n N", "next, previous"),
    ("t", "thinking"),
    ("c", "results"),
    ("y", "copy"),
    ("g G", "ends"),
];

/// What is on the screen next.
pub struct PagerFrame {
    /// All cells.
    pub cells: Buffer,
    /// Where the cursor stands; none if it is hidden.
    pub caret: Option<Position>,
}

/// Returns the next frame.
pub fn view(it: &mut Pager) -> PagerFrame {
    let width = it.size.columns.max(NARROWEST);
    let rows = usize::from(it.size.rows).max(1);
    let height = it.height();
    let places = scroll::screen(&mut it.document, it.top, height);
    let mut lines = Vec::with_capacity(rows);
    if rows > 2 {
        lines.push(head(it, width));
    }
    let first = lines.len();
    for place in &places {
        let line = it.document.lines(place.entry);
        let line = line.and_then(|lines| lines.get(place.line)).cloned();
        lines.push(clip(&line.unwrap_or_default(), width));
    }
    if places.is_empty() {
        let words = match it.document.total() {
            0 => "nothing was said yet",
            _ => "…",
        };
        lines.push(Line::styled(words, Style::new().dim()));
    }
    let last = lines.len();
    lines.resize(rows.saturating_sub(1).max(1), Line::default());
    let mut caret = None;
    if rows > 1 {
        let (foot, column) = foot(it, width);
        caret = column.map(|column| Position::new(column.min(width - 1), lines.len() as u16));
        lines.push(foot);
    }
    let mut cells = region(&lines, width);
    for row in first..last.min(rows) {
        mark(&mut cells, row as u16, &it.search.text);
    }
    PagerFrame { cells, caret }
}

fn head(it: &Pager, width: u16) -> Line<'static> {
    let total = it.document.total();
    let at = (it.top.entry + 1).min(total);
    let part = match (it.follows, total) {
        (true, _) | (_, 0) => "end".to_owned(),
        _ => format!("{} %", it.top.entry.saturating_mul(100) / total),
    };
    let place = format!("{at} of {total} · {part}");
    let room = usize::from(width).saturating_sub(columns(&place) + 1);
    let title = clip(
        &Line::styled(it.title.clone(), Style::new().bold()),
        room as u16,
    );
    let gap = usize::from(width).saturating_sub(title.width() + columns(&place));
    let mut line = title;
    line.push_span(Span::raw(" ".repeat(gap)));
    line.push_span(Span::styled(place, Style::new().dim()));
    clip(&line, width)
}

/// Returns the last line, and the column of the cursor if something is written there.
fn foot(it: &Pager, width: u16) -> (Line<'static>, Option<u16>) {
    let yellow = ColorRole::Warning.style();
    if let Some(line) = &it.search.line {
        // The rows leave room for a sign of two columns, and this has one.
        let (rows, (row, column)) = edited_rows(line, width + 1, 1, ("/", yellow));
        let line = rows.into_iter().nth(row).unwrap_or_default();
        return (clip(&line, width), Some(column.saturating_sub(1)));
    }
    if let Some(notice) = &it.notice {
        return (clip(&Line::styled(notice.clone(), yellow), width), None);
    }
    if it.search.is_running() {
        return (Line::styled("searching …", yellow), None);
    }
    let mut line = Line::default();
    let mut room = usize::from(width);
    for (key, word) in KEYS {
        let taken = columns(key) + columns(word) + 3;
        if taken > room {
            break;
        }
        room -= taken;
        line.push_span(Span::styled(key, Style::new().bold()));
        line.push_span(Span::styled(format!(" {word}  "), Style::new().dim()));
    }
    (line, None)
}

/// Marks a text in a row, wherever it is.
fn mark(cells: &mut Buffer, row: u16, text: &str) {
    let text = text.to_lowercase();
    if text.is_empty() {
        return;
    }
    // The columns of the bytes of the row.
    let (mut words, mut places) = (String::new(), Vec::new());
    let mut column = 0;
    while let Some(cell) = cells.cell((column, row)) {
        let symbol = cell.symbol().to_lowercase();
        places.extend(std::iter::repeat_n(column, symbol.len()));
        words.push_str(&symbol);
        column += cell.symbol().width().clamp(1, 2) as u16;
    }
    let found: Vec<usize> = words.match_indices(&text).map(|(at, _)| at).collect();
    for start in found {
        for column in places.iter().skip(start).take(text.len()) {
            if let Some(cell) = cells.cell_mut((*column, row)) {
                cell.modifier |= Modifier::REVERSED;
            }
        }
    }
}
