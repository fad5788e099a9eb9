//! The conversation in the terminal's own scrollback: what is said is printed once and never
//! touched again; a small live region at the foot is redrawn by relative moves.
//!
//! It never clears the screen or the scrollback, asks the terminal nothing and sets no scroll
//! region. It only makes bytes: one write per frame, none if nothing has changed.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::text::Line;
use unicode_width::UnicodeWidthStr;

use super::pen::{Pen, is_blank};
use crate::theme::Theme;

/// A terminal may reflow before it tells its new size: a frame that is younger than this counts as
/// drawn at that size. Erasing too little leaves a stale row; erasing too much eats what was said.
const REFLOW_MS: u64 = 10;

/// What is on the screen next.
pub struct Frame {
    /// Lines that are printed above the live region, for good.
    pub printed: Vec<Line<'static>>,
    /// The live region.
    pub live: Buffer,
    /// Where the cursor stands in it.
    pub caret: Position,
}

/// What was drawn last.
struct Drawn {
    live: Buffer,
    caret: Position,
    at_ms: u64,
}

/// The live region of a terminal. While it is there, the terminal wraps nothing: a size that is not
/// known yet must not make rows wrap, since then none could be found again.
pub struct InlineTerminal {
    drawn: Option<Drawn>,
    theme: Theme,
}

impl InlineTerminal {
    /// Nothing is drawn yet. A theme changes colours and nothing else.
    pub fn new(theme: Theme) -> Self {
        Self { drawn: None, theme }
    }

    /// Returns the bytes that bring a frame on the screen; empty if it is there already.
    pub fn draw(&mut self, frame: Frame, now_ms: u64) -> Vec<u8> {
        let bytes = match &self.drawn {
            Some(drawn)
                if frame.printed.is_empty() && drawn.live.area.width == frame.live.area.width =>
            {
                self.changes(drawn, &frame)
            }
            _ => self.all(&frame, now_ms),
        };
        self.drawn = Some(Drawn {
            live: frame.live,
            caret: frame.caret,
            at_ms: now_ms,
        });
        bytes
    }

    /// Returns the bytes that remove the live region, and prints `last` in its place.
    pub fn leave(&mut self, last: &[Line<'static>], columns: u16, now_ms: u64) -> Vec<u8> {
        let mut pen = Pen::new(self.theme);
        self.go_to_top(&mut pen, columns, now_ms);
        pen.wrap(true);
        for line in last {
            pen.line(line);
            pen.line_break();
        }
        pen.show_cursor(true);
        self.drawn = None;
        pen.finish()
    }

    /// Erases the live region.
    fn go_to_top(&self, pen: &mut Pen, columns: u16, now_ms: u64) {
        let Some(drawn) = &self.drawn else { return };
        pen.column(0);
        pen.up(drawn.rows_above_caret(columns, now_ms));
        pen.erase_below();
    }

    /// Prints lines, and draws the whole live region below them.
    fn all(&self, frame: &Frame, now_ms: u64) -> Vec<u8> {
        let mut pen = Pen::new(self.theme);
        pen.show_cursor(false);
        self.go_to_top(&mut pen, frame.live.area.width, now_ms);
        if self.drawn.is_some() && !frame.printed.is_empty() {
            pen.wrap(true);
        }
        for line in &frame.printed {
            pen.line(line);
            pen.line_break();
        }
        if self.drawn.is_none() || !frame.printed.is_empty() {
            pen.wrap(false);
        }
        let height = frame.live.area.height;
        for row in 0..height {
            if row > 0 {
                pen.line_break();
            }
            pen.cells(&frame.live, row, 0..used(&frame.live, row));
        }
        pen.up(height.saturating_sub(1).saturating_sub(frame.caret.y));
        pen.column(frame.caret.x);
        pen.show_cursor(true);
        pen.finish()
    }

    /// Writes the cells that have changed.
    fn changes(&self, drawn: &Drawn, frame: &Frame) -> Vec<u8> {
        if drawn.live == frame.live && drawn.caret == frame.caret {
            return Vec::new();
        }
        let (old, new) = (&drawn.live, &frame.live);
        let mut pen = Pen::new(self.theme);
        let mut at = drawn.caret.y;
        let go = |pen: &mut Pen, at: &mut u16, row: u16| {
            pen.up(at.saturating_sub(row));
            pen.down(row.saturating_sub(*at));
            *at = row;
        };
        let rows = (old.area.height, new.area.height);
        if rows.1 < rows.0 {
            go(&mut pen, &mut at, rows.1);
            pen.column(0);
            pen.erase_below();
        }
        if rows.1 > rows.0 {
            go(&mut pen, &mut at, rows.0.saturating_sub(1));
            for _ in rows.0..rows.1 {
                // Unlike a move, it makes room at the foot of the screen.
                pen.line_break();
            }
            at = rows.1.saturating_sub(1);
        }
        for row in 0..rows.1 {
            if let Some(changed) = changed(old, new, row) {
                go(&mut pen, &mut at, row);
                let end = used(new, row);
                pen.column(changed.start);
                pen.cells(new, row, changed.start..changed.end.min(end));
                if changed.end > end {
                    pen.erase_rest();
                }
            }
        }
        go(&mut pen, &mut at, frame.caret.y);
        pen.column(frame.caret.x);
        pen.finish()
    }
}

impl Drawn {
    /// Returns how many rows the live region has above its caret, in a terminal that may have become
    /// narrower.
    fn rows_above_caret(&self, columns: u16, now_ms: u64) -> u16 {
        let is_young = now_ms.saturating_sub(self.at_ms) < REFLOW_MS;
        if columns >= self.live.area.width || columns == 0 || is_young {
            return self.caret.y;
        }
        let rows = |width: u16| width.div_ceil(columns).max(1);
        let above: u16 = (0..self.caret.y)
            .map(|row| rows(used(&self.live, row)))
            .sum();
        above + self.caret.x / columns
    }
}

/// Returns the number of columns of a row that have something in them.
pub(super) fn used(buffer: &Buffer, row: u16) -> u16 {
    let width = buffer.area.width;
    let is_blank = |column: &u16| buffer.cell((*column, row)).is_none_or(is_blank);
    let blank = (0..width).rev().take_while(is_blank).count() as u16;
    // The second half of a wide character is blank, too.
    let end = width - blank;
    match end.checked_sub(1).and_then(|last| buffer.cell((last, row))) {
        Some(cell) if cell.symbol().width() > 1 => (end + 1).min(width),
        _ => end,
    }
}

/// Returns the columns of a row that have changed.
pub(super) fn changed(old: &Buffer, new: &Buffer, row: u16) -> Option<std::ops::Range<u16>> {
    let blank = Cell::default();
    let cells = |column: u16| {
        let at = (column, row);
        let (old, new) = (old.cell(at), new.cell(at));
        (old.unwrap_or(&blank), new.unwrap_or(&blank))
    };
    let width = new.area.width;
    let differs = |column: &u16| {
        let (old, new) = cells(*column);
        old != new
    };
    let first = (0..width).find(differs)?;
    let last = (0..width).rev().find(differs)?;
    // Not from the middle of a wide character, and not up to the middle of one.
    let is_wide = |column: u16| {
        let (old, new) = cells(column);
        old.symbol().width() > 1 || new.symbol().width() > 1
    };
    let start = match first.checked_sub(1) {
        Some(before) if is_wide(before) => before,
        _ => first,
    };
    let end = if is_wide(last) { last + 2 } else { last + 1 };
    Some(start..end.min(width))
}

/// Returns a region of lines, each cut off at the width.
pub fn region(lines: &[Line<'static>], width: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, lines.len() as u16));
    for (row, line) in lines.iter().enumerate() {
        buffer.set_line(0, row as u16, line, width);
    }
    buffer
}

#[cfg(test)]
mod tests;
