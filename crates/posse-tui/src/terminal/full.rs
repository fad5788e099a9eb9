//! The alternate screen: boards and pagers have all of it, and the first screen comes back as it was.
//!
//! It only makes bytes: one write per frame, none if nothing has changed. The screen is never cleared
//! as a whole, so that no frame is seen without its content.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Position;

use super::inline::{changed, used};
use super::pen::Pen;
use crate::theme::Theme;

/// Saves the cursor, goes to the alternate screen, hides the cursor there, and cuts long lines off.
/// Not every terminal saves the cursor for [`RESTORE`](super::RESTORE) by itself.
const ENTER: &[u8] = b"\x1b7\x1b[?1049h\x1b[?25l\x1b[?7l";

/// Has the terminal tell of the mouse: clicks and the wheel, not moves.
const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// Goes back to the first screen.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?1049l\x1b[?7h\x1b[?25h";

/// The alternate screen of a terminal.
pub struct FullScreen {
    drawn: Option<(Buffer, Option<Position>)>,
    theme: Theme,
    has_mouse: bool,
}

impl FullScreen {
    /// Nothing is drawn yet. A theme changes colours and nothing else.
    pub fn new(theme: Theme) -> Self {
        Self {
            drawn: None,
            theme,
            has_mouse: false,
        }
    }

    /// Returns the same screen, on which the mouse is told of. The terminal's own selection needs
    /// Shift then.
    pub fn with_mouse(self) -> Self {
        Self {
            has_mouse: true,
            ..self
        }
    }

    /// Returns the bytes that go to the alternate screen. The next frame is drawn as a whole.
    pub fn enter(&mut self) -> Vec<u8> {
        self.drawn = None;
        let mouse = if self.has_mouse { MOUSE } else { &[] };
        [ENTER, mouse].concat()
    }

    /// Returns the bytes that go back to the first screen, which is as it was before.
    pub fn leave(&mut self) -> Vec<u8> {
        self.drawn = None;
        let mouse = if self.has_mouse { NO_MOUSE } else { &[] };
        [mouse, LEAVE].concat()
    }

    /// Returns the bytes that bring cells on the screen; empty if they are there already. The cursor
    /// is hidden without a `caret`.
    pub fn draw(&mut self, cells: Buffer, caret: Option<Position>) -> Vec<u8> {
        let before = self.drawn.take();
        let had_caret = before.as_ref().is_some_and(|(_, caret)| caret.is_some());
        let same_size = before.filter(|(old, _)| old.area == cells.area);
        let is_same = |(old, at): &(Buffer, Option<Position>)| *old == cells && *at == caret;
        if same_size.as_ref().is_some_and(is_same) {
            self.drawn = same_size;
            return Vec::new();
        }
        let mut pen = Pen::new(self.theme);
        if had_caret {
            pen.show_cursor(false);
        }
        for row in 0..cells.area.height {
            let columns = match &same_size {
                Some((old, _)) => changed(old, &cells, row),
                None => Some(0..cells.area.width),
            };
            let Some(columns) = columns else { continue };
            pen.cell(Position::new(columns.start, row));
            let end = used(&cells, row);
            pen.cells(&cells, row, columns.start..columns.end.min(end));
            // A row that is full to its end must stay so: its last cell would be erased.
            if columns.end > end {
                pen.erase_rest();
            }
        }
        if let Some(caret) = caret {
            pen.cell(caret);
            pen.show_cursor(true);
        }
        self.drawn = Some((cells, caret));
        pen.finish()
    }
}

#[cfg(test)]
mod tests;
