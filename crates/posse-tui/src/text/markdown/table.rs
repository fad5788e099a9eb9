//! Tables: columns aligned, and narrowed until they fit.

use pulldown_cmark::Alignment;
use ratatui_core::text::{Line, Span};

use crate::text::wrap::{wrap, wrap_hard};

/// Blanks between two columns.
const BETWEEN: usize = 2;
/// Columns of the terminal that a column of a table needs to be readable.
const NARROWEST: usize = 4;

/// A table that is being collected.
#[derive(Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Line<'static>>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
        }
    }

    /// Begins a row.
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Returns true while the first row is collected.
    pub(super) fn is_in_head(&self) -> bool {
        self.rows.len() == 1
    }

    /// Adds a cell to the last row.
    pub(super) fn push(&mut self, cell: Line<'static>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Renders the table.
    pub(super) fn lines(&self, width: u16) -> Vec<Line<'static>> {
        let Some(widths) = self.widths(usize::from(width)) else {
            return self.as_lists(width);
        };
        let rows = self.rows.iter();
        rows.flat_map(|row| self.row(row, &widths)).collect()
    }

    /// Returns the width of each column, or `None` if they cannot stand beside each other.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let mut widths = vec![1; self.rows.iter().map(Vec::len).max()?];
        for row in &self.rows {
            for (column, cell) in widths.iter_mut().zip(row) {
                *column = (*column).max(cell.width());
            }
        }
        let room = width.checked_sub(BETWEEN * (widths.len() - 1))?;
        let total = |cap: usize| {
            widths
                .iter()
                .map(|column| (*column).min(cap))
                .sum::<usize>()
        };
        if total(usize::MAX) <= room {
            return Some(widths);
        }
        if widths.len() * NARROWEST > room {
            return None;
        }
        let caps = NARROWEST..=room;
        let cap = caps.rev().find(|cap| total(*cap) <= room)?;
        let mut spare = room.saturating_sub(total(cap));
        for column in &mut widths {
            let extra = usize::from(*column > cap && spare > 0);
            spare -= extra;
            *column = (*column).min(cap + extra);
        }
        Some(widths)
    }

    fn row(&self, row: &[Line<'static>], widths: &[usize]) -> Vec<Line<'static>> {
        let cells: Vec<Vec<Line<'static>>> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| wrap_hard(cell, u16::try_from(*width).unwrap_or(u16::MAX)))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let mut spans: Vec<Span<'static>> = Vec::new();
            let mut blanks = 0;
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let line = cell.get(index).cloned().unwrap_or_default();
                let space = width.saturating_sub(line.width());
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => space,
                    Some(Alignment::Center) => space / 2,
                    _ => 0,
                };
                blanks += before;
                // Blanks at the end of a line are never written.
                if blanks > 0 && !line.spans.is_empty() {
                    spans.push(Span::raw(" ".repeat(std::mem::take(&mut blanks))));
                }
                blanks += space - before + BETWEEN;
                if line.spans.is_empty() {
                    continue;
                }
                spans.extend(line.spans);
            }
            Line::from(spans)
        };
        (0..height).map(line).collect()
    }

    /// Renders each row as one wrapped line.
    fn as_lists(&self, width: u16) -> Vec<Line<'static>> {
        let line = |row: &Vec<Line<'static>>| {
            let mut spans: Vec<Span<'static>> = Vec::new();
            for cell in row.iter().filter(|cell| !cell.spans.is_empty()) {
                if !spans.is_empty() {
                    spans.push(Span::raw("  "));
                }
                spans.extend(cell.spans.iter().cloned());
            }
            wrap(&Line::from(spans), width, 2)
        };
        self.rows.iter().flat_map(line).collect()
    }
}
