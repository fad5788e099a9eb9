//! Rows on the screen: wrapping, the place of the caret, movement up and down.
//!
//! Rows end between words where possible, otherwise between graphemes. One blank at the end of a
//! full row takes no column, so that the next row begins with its word.

use super::buffer::EditBuffer;
use super::grapheme;

/// One row of the screen: bytes of the buffer's text, without a line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisualRow {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
    /// Columns that are used.
    pub width: usize,
}

/// All rows at one width, with the place of the caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The rows from top to bottom, at least one.
    pub rows: Vec<VisualRow>,
    /// Row and column of the caret. The column is always less than the width.
    pub caret: (usize, usize),
}

/// A stretch of a row, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowSpan<'a> {
    /// Text as it stands in the buffer.
    Text(&'a str),
    /// The label of a chip, cut if the row is narrower.
    Chip(&'a str),
}

impl EditBuffer {
    /// Wraps the text to rows of `width` columns. A width of 0 counts as 1.
    ///
    /// A caret after the last column of a full row stands on the next row. If the line ends there,
    /// it gets an empty row for as long as the caret stays.
    pub fn layout(&self, width: usize) -> Layout {
        let width = width.max(1);
        let mut rows = Vec::new();
        let mut start = 0;
        for line in self.text.split('\n') {
            let end = start + line.len();
            self.wrap_line(start, end, width, &mut rows);
            start = end + 1;
        }
        let above = rows
            .partition_point(|row| row.start <= self.cursor)
            .saturating_sub(1);
        let column = rows.get(above).map_or(0, |row| self.column(*row, width));
        let caret = if column < width {
            (above, column)
        } else {
            (above + 1, 0)
        };
        Layout { rows, caret }
    }

    /// Returns what to draw for a row that was wrapped at `width`.
    pub fn spans(&self, row: VisualRow, width: usize) -> Vec<RowSpan<'_>> {
        let width = width.max(1);
        let mut spans = Vec::new();
        let (mut start, mut column) = (row.start, 0);
        for (at, grapheme) in grapheme::graphemes(&self.text[row.start..row.end]) {
            let at = row.start + at;
            let columns = self.columns(grapheme, width);
            if column + columns > width {
                // Only the blank that takes no column.
                spans.extend(text_span(&self.text[start..at]));
                return spans;
            }
            column += columns;
            if let Some(label) = self.chips.label(grapheme) {
                spans.extend(text_span(&self.text[start..at]));
                spans.push(RowSpan::Chip(grapheme::clip(label, width)));
                start = at + grapheme.len();
            }
        }
        spans.extend(text_span(&self.text[start..row.end]));
        spans
    }

    /// Moves one row up and keeps the column where possible. Returns false on the first row.
    pub fn up(&mut self, width: usize) -> bool {
        let layout = self.layout(width);
        self.move_to_row(&layout, layout.caret.0.checked_sub(1), width)
    }

    /// Moves one row down and keeps the column where possible. Returns false on the last row.
    pub fn down(&mut self, width: usize) -> bool {
        let layout = self.layout(width);
        self.move_to_row(&layout, Some(layout.caret.0 + 1), width)
    }

    fn move_to_row(&mut self, layout: &Layout, target: Option<usize>, width: usize) -> bool {
        let wanted = self.wanted_column.unwrap_or(layout.caret.1);
        self.settle();
        let Some(target) = target.filter(|target| *target < layout.rows.len()) else {
            return false;
        };
        self.cursor = self.offset_at(layout, target, wanted, width.max(1));
        self.wanted_column = Some(wanted);
        true
    }

    /// The offset in a row at a column or just before it, which the caret shows in that row.
    fn offset_at(&self, layout: &Layout, target: usize, wanted: usize, width: usize) -> usize {
        let row = layout.rows[target];
        // The end of a wrapped row is the start of the next one.
        let wraps = layout
            .rows
            .get(target + 1)
            .is_some_and(|next| next.start == row.end);
        let (mut offset, mut column) = (row.start, 0);
        for (at, grapheme) in grapheme::graphemes(&self.text[row.start..row.end]) {
            let end = row.start + at + grapheme.len();
            column += self.columns(grapheme, width);
            if column > wanted || column >= width || (wraps && end == row.end) {
                break;
            }
            offset = end;
        }
        offset
    }

    /// The column of the cursor in a row, which can be beyond the last one.
    fn column(&self, row: VisualRow, width: usize) -> usize {
        let before = self.text.get(row.start..self.cursor).unwrap_or_default();
        grapheme::graphemes(before)
            .map(|(_, grapheme)| self.columns(grapheme, width))
            .sum()
    }

    /// Columns of one grapheme or chip. Nothing is wider than a row.
    fn columns(&self, grapheme: &str, width: usize) -> usize {
        // Labels are ASCII: one byte, one column.
        let columns = match self.chips.label(grapheme) {
            Some(label) => label.len(),
            None => grapheme::width(grapheme),
        };
        columns.min(width)
    }

    fn wrap_line(&self, start: usize, end: usize, width: usize, rows: &mut Vec<VisualRow>) {
        let mut row = OpenRow {
            start,
            column: 0,
            place: None,
            hanging: false,
        };
        for (at, grapheme) in grapheme::graphemes(&self.text[start..end]) {
            let at = start + at;
            let columns = self.columns(grapheme, width);
            if grapheme == " " && row.column == width && !row.hanging {
                row.hanging = true;
                continue;
            }
            let stands_alone = columns > 1 || self.chips.label(grapheme).is_some();
            if stands_alone && at > row.start {
                row.place = Some((at, row.column));
            }
            while row.column + columns > width && row.column > 0 {
                rows.push(row.wrap(at));
            }
            row.column += columns;
            if stands_alone || grapheme::is_blank(grapheme) {
                row.place = Some((at + grapheme.len(), row.column));
            }
        }
        let last = VisualRow {
            start: row.start,
            end,
            width: row.column,
        };
        rows.push(last);
        let holds_cursor = (last.start..=end).contains(&self.cursor);
        if holds_cursor && self.column(last, width) >= width {
            rows.push(VisualRow {
                start: end,
                end,
                width: 0,
            });
        }
    }
}

fn text_span(text: &str) -> Option<RowSpan<'_>> {
    (!text.is_empty()).then_some(RowSpan::Text(text))
}

/// The row that is being filled.
struct OpenRow {
    start: usize,
    column: usize,
    /// The last place where the row may end: its offset and column.
    place: Option<(usize, usize)>,
    /// A blank after the last column was taken in.
    hanging: bool,
}

impl OpenRow {
    /// Ends the row at the last good place, or at `at`. What follows the place begins the next row.
    fn wrap(&mut self, at: usize) -> VisualRow {
        let here = (at, self.column);
        let (end, width) = if self.hanging {
            here
        } else {
            self.place.unwrap_or(here)
        };
        let row = VisualRow {
            start: self.start,
            end,
            width,
        };
        *self = OpenRow {
            start: end,
            column: self.column - width,
            place: None,
            hanging: false,
        };
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Motion;

    fn buffer(text: &str) -> EditBuffer {
        let mut buffer = EditBuffer::new();
        assert!(buffer.set(text));
        buffer
    }

    fn drawn(buffer: &EditBuffer, width: usize) -> Vec<String> {
        let rows = buffer.layout(width).rows.into_iter().map(|row| {
            let spans = buffer.spans(row, width).into_iter().map(|span| match span {
                RowSpan::Text(text) | RowSpan::Chip(text) => text,
            });
            spans.collect::<String>()
        });
        rows.collect()
    }

    fn check(text: &str, width: usize, rows: &[&str]) {
        let mut buffer = buffer(text);
        buffer.go(Motion::BufferStart);
        assert_eq!(drawn(&buffer, width), rows, "{text:?} at {width}");
    }

    #[test]
    fn rows_end_between_words() {
        check("", 5, &[""]);
        check("one two three", 8, &["one two ", "three"]);
        check("one two three", 7, &["one two", "three"]);
        check("hello   world", 5, &["hello", "  ", "world"]);
        check("a\n\nb", 5, &["a", "", "b"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("ab cdefghij", 4, &["ab ", "cdef", "ghij"]);
    }

    #[test]
    fn wide_characters_are_two_columns() {
        check("漢字漢字", 5, &["漢字", "漢字"]);
        check("ab漢字", 5, &["ab漢", "字"]);
        check(
            "👨\u{200d}👩\u{200d}👧👍",
            3,
            &["👨\u{200d}👩\u{200d}👧", "👍"],
        );
        check(
            "e\u{301}e\u{301}e\u{301}",
            2,
            &["e\u{301}e\u{301}", "e\u{301}"],
        );
        check("漢字", 1, &["漢", "字"]);
        check("שלום עולם", 5, &["שלום ", "עולם"]);
    }

    #[test]
    fn a_caret_after_a_full_row_is_on_the_next() {
        let mut typed = buffer("abc");
        assert_eq!(
            (typed.layout(3).caret, typed.layout(3).rows.len()),
            ((1, 0), 2)
        );
        typed.go(Motion::Left);
        assert_eq!(
            (typed.layout(3).caret, typed.layout(3).rows.len()),
            ((0, 2), 1)
        );

        let mut lines = buffer("abc\nd");
        lines.up(9);
        lines.go(Motion::LineEnd);
        assert_eq!(
            (lines.layout(3).caret, lines.layout(3).rows.len()),
            ((1, 0), 3)
        );
        assert!(lines.down(3));
        assert_eq!(
            (lines.layout(3).caret, lines.layout(3).rows.len()),
            ((1, 0), 2)
        );

        let blank = buffer("abc ");
        assert_eq!(blank.layout(3).caret, (1, 0));
        assert_eq!(buffer("漢字").layout(5).caret, (0, 4));
    }

    #[test]
    fn up_and_down_keep_the_column() {
        let mut buffer = buffer("long line\nx\n漢字漢字漢字");
        buffer.go(Motion::BufferStart);
        (0..5).for_each(|_| assert!(buffer.go(Motion::Right)));
        assert!(buffer.down(20));
        assert_eq!(buffer.layout(20).caret, (1, 1));
        assert!(buffer.down(20));
        assert_eq!(buffer.layout(20).caret, (2, 4));
        assert!(!buffer.down(20));
        assert!(buffer.up(20) && buffer.up(20));
        assert_eq!(buffer.layout(20).caret, (0, 4));
        assert!(!buffer.up(20));
    }

    #[test]
    fn up_and_down_go_by_rows_of_the_screen() {
        let mut buffer = buffer("one two three");
        assert_eq!(buffer.layout(8).caret, (1, 5));
        assert!(buffer.up(8));
        assert_eq!((buffer.cursor(), buffer.layout(8).caret), (5, (0, 5)));
        assert!(buffer.down(8));
        assert_eq!(buffer.cursor(), 13);
    }

    #[test]
    fn labels_are_cut_to_the_row() {
        let mut buffer = buffer("see ");
        buffer.paste(&"line\n".repeat(214));
        buffer.insert(" ok");
        assert_eq!(drawn(&buffer, 40), ["see [paste 1: 214 lines] ok"]);
        assert_eq!(drawn(&buffer, 20), ["see ", "[paste 1: 214 lines]", "ok"]);
        assert_eq!(drawn(&buffer, 10), ["see ", "[paste 1: ", "ok"]);
        assert_eq!(buffer.layout(40).caret, (0, 27));
        assert_eq!(buffer.layout(10).caret, (2, 2));
    }
}
