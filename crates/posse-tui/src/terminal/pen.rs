//! Turns cells and lines into bytes for a terminal.
//!
//! Nothing but printable characters of a cell and the sequences of this file can leave here.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Position;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;
use unicode_width::UnicodeWidthStr;

use crate::theme::Theme;

/// What a frame begins and ends with, so that a terminal shows it at once.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// Number of blank cells from which on they are erased instead of written.
const ERASED: u16 = 12;

/// Bytes in the making.
pub(crate) struct Pen {
    bytes: String,
    style: Style,
    theme: Theme,
}

impl Pen {
    pub(crate) fn new(theme: Theme) -> Self {
        Self {
            bytes: BEGIN.to_owned(),
            style: Style::reset(),
            theme,
        }
    }

    /// Lines that are no frame, in the terminal's own colours.
    pub(crate) fn for_lines() -> Self {
        Self {
            bytes: String::new(),
            style: Style::reset(),
            theme: Theme::ansi(),
        }
    }

    /// Returns what was written, without the end of a frame.
    pub(crate) fn into_text(mut self) -> String {
        self.plain();
        self.bytes
    }

    /// Returns the bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.plain();
        self.bytes.push_str(END);
        self.bytes.into_bytes()
    }

    pub(crate) fn show_cursor(&mut self, shown: bool) {
        self.raw(if shown { "\x1b[?25h" } else { "\x1b[?25l" });
    }

    /// Lets long lines continue on the next row, or cuts them off.
    pub(crate) fn wrap(&mut self, wraps: bool) {
        self.raw(if wraps { "\x1b[?7h" } else { "\x1b[?7l" });
    }

    /// Erases everything below the cursor, its row from there on included.
    pub(crate) fn erase_below(&mut self) {
        self.plain();
        self.raw("\x1b[J");
    }

    /// Erases the rest of the row.
    pub(crate) fn erase_rest(&mut self) {
        self.plain();
        self.raw("\x1b[K");
    }

    pub(crate) fn line_break(&mut self) {
        self.plain();
        self.raw("\r\n");
    }

    pub(crate) fn up(&mut self, rows: u16) {
        self.by(rows, 'A');
    }

    /// Goes down by line feeds. Unlike a move they make rows that are missing: a terminal whose
    /// window becomes lower removes those below the cursor.
    pub(crate) fn down(&mut self, rows: u16) {
        self.plain();
        self.bytes.extend(std::iter::repeat_n('\n', rows.into()));
    }

    /// Goes to a column of the row.
    pub(crate) fn column(&mut self, column: u16) {
        match column {
            0 => self.raw("\r"),
            _ => self.by(column + 1, 'G'),
        }
    }

    /// Goes to a cell of the screen.
    pub(crate) fn cell(&mut self, at: Position) {
        let (row, column) = (at.y + 1, at.x + 1);
        self.bytes.push_str(&format!("\x1b[{row};{column}H"));
    }

    fn by(&mut self, count: u16, direction: char) {
        match count {
            0 => {}
            1 => self.bytes.extend(['\x1b', '[', direction]),
            _ => self.bytes.push_str(&format!("\x1b[{count}{direction}")),
        }
    }

    /// Writes a whole line; the terminal wraps it.
    pub(crate) fn line(&mut self, line: &Line<'_>) {
        for span in &line.spans {
            self.styled(Style::reset().patch(line.style).patch(span.style));
            self.text(&span.content);
        }
        self.plain();
    }

    /// Writes the cells of a row from one column up to another.
    pub(crate) fn cells(&mut self, buffer: &Buffer, row: u16, columns: std::ops::Range<u16>) {
        let mut column = columns.start;
        while column < columns.end {
            let blank = blank_cells(buffer, row, column..columns.end);
            if blank >= ERASED {
                self.erase(blank);
                column += blank;
                continue;
            }
            let Some(cell) = buffer.cell((column, row)) else {
                break;
            };
            self.styled(cell.style());
            self.text(cell.symbol());
            // A wide character covers the next cell, too.
            column += cell.symbol().width().clamp(1, 2) as u16;
        }
    }

    /// Erases cells from the cursor on, and goes to the one after them.
    fn erase(&mut self, cells: u16) {
        // Cells are erased in the colour of the background.
        if self.style.bg.is_some_and(|color| color != Color::Reset) {
            self.plain();
        }
        self.by(cells, 'X');
        self.by(cells, 'C');
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend(text.chars().filter(|c| !c.is_control()));
    }

    fn plain(&mut self) {
        self.styled(Style::reset());
    }

    fn raw(&mut self, sequence: &str) {
        self.bytes.push_str(sequence);
    }

    /// Changes the style, if it differs.
    fn styled(&mut self, style: Style) {
        let mut style = self.theme.drawn(style);
        style.sub_modifier = Modifier::empty();
        if appearance(style) == appearance(self.style) {
            return;
        }
        self.bytes.push_str("\x1b[0");
        for (modifier, code) in MODIFIERS {
            if style.add_modifier.contains(modifier) {
                self.bytes.push_str(&format!(";{code}"));
            }
        }
        for (color, base) in [(style.fg, 30), (style.bg, 40)] {
            if let Some(code) = color.and_then(|color| color_code(color, base)) {
                self.bytes.push_str(&format!(";{code}"));
            }
        }
        self.bytes.push('m');
        self.style = style;
    }
}

/// Returns true if nothing is seen of a cell.
pub(super) fn is_blank(cell: &Cell) -> bool {
    let seen = Modifier::REVERSED | Modifier::UNDERLINED;
    cell.symbol() == " " && cell.bg == Color::Reset && !cell.modifier.intersects(seen)
}

/// Returns how many cells are blank at the beginning of a part of a row.
fn blank_cells(buffer: &Buffer, row: u16, columns: std::ops::Range<u16>) -> u16 {
    let blank = |column: &u16| buffer.cell((*column, row)).is_some_and(is_blank);
    columns.take_while(blank).count() as u16
}

const MODIFIERS: [(Modifier, u8); 6] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

/// Returns what of a style is seen.
fn appearance(style: Style) -> (Option<String>, Option<String>, Modifier) {
    let code = |color: Option<Color>, base| color.and_then(|color| color_code(color, base));
    (code(style.fg, 30), code(style.bg, 40), style.add_modifier)
}

/// Returns the code of a colour, none for the terminal's own.
fn color_code(color: Color, base: u8) -> Option<String> {
    let number = match color {
        Color::Reset => return None,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 60,
        Color::LightRed => 61,
        Color::LightGreen => 62,
        Color::LightYellow => 63,
        Color::LightBlue => 64,
        Color::LightMagenta => 65,
        Color::LightCyan => 66,
        Color::White => 67,
        Color::Indexed(index) => return Some(format!("{};5;{index}", base + 8)),
        Color::Rgb(red, green, blue) => {
            return Some(format!("{};2;{red};{green};{blue}", base + 8));
        }
    };
    Some((base + number).to_string())
}
