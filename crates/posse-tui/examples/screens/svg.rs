//! Cells of a terminal as an SVG picture: a run of cells with one style is one text.

use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

/// The size of a cell and of the border, in units of the picture.
const WIDTH: f32 = 8.4;
const HEIGHT: u16 = 18;
const BORDER: u16 = 12;
/// From the top of a row to the line on which letters stand.
const BASE: u16 = 13;

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d7dae0";
const CURSOR: &str = "#8b93a1";
/// The sixteen colours of a terminal.
const COLOURS: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf",
    "#5c6370", "#ef7d86", "#a9d48a", "#f6d18c", "#72c0ff", "#d789ee", "#67c7d3", "#ffffff",
];

/// Returns the picture of a screen. Rows that are empty at the end are left out.
pub(crate) fn picture(screen: &Screen) -> String {
    let (rows, columns) = (screen.size().0.get(), screen.size().1.get());
    let texts: Vec<String> = screen.rows(0, columns).collect();
    let used = texts.iter().rposition(|text| !text.trim().is_empty());
    let rows = rows.min(used.map_or(1, |last| last as u16 + 1));
    let width = f32::from(columns) * WIDTH + f32::from(2 * BORDER);
    let height = rows * HEIGHT + 2 * BORDER;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"14\" fill=\"{FOREGROUND}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    if !screen.hide_cursor() {
        let (row, column) = screen.cursor_position();
        block(&mut svg, (row, column, 1), CURSOR);
    }
    for row in 0..rows {
        for run in runs(screen, row) {
            run.draw(&mut svg, row);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Cells of a row that look alike.
struct Run<'a> {
    style: &'a Cell,
    column: u16,
    columns: u16,
    text: String,
}

/// Returns the runs of a row.
fn runs(screen: &Screen, row: u16) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let columns = 0..screen.size().1.get();
    let cells = columns.filter_map(|column| Some((column, screen.cell(row, column)?)));
    for (column, cell) in cells.filter(|(_, cell)| !cell.is_wide_continuation()) {
        let columns = if cell.is_wide() { 2 } else { 1 };
        let text = match cell.contents() {
            "" => " ",
            text => text,
        };
        match runs.last_mut().filter(|run| is_alike(run.style, cell)) {
            Some(run) => {
                run.columns += columns;
                run.text.push_str(text);
            }
            None => runs.push(Run {
                style: cell,
                column,
                columns,
                text: text.to_owned(),
            }),
        }
    }
    runs
}

fn is_alike(one: &Cell, other: &Cell) -> bool {
    let style = |cell: &Cell| {
        let marks = [cell.bold(), cell.dim(), cell.italic(), cell.underline()];
        (cell.fgcolor(), cell.bgcolor(), cell.inverse(), marks)
    };
    style(one) == style(other)
}

impl Run<'_> {
    fn draw(&self, svg: &mut String, row: u16) {
        let cell = self.style;
        let front = colour(cell.fgcolor()).unwrap_or_else(|| FOREGROUND.to_owned());
        let back = colour(cell.bgcolor());
        let (front, back) = match cell.inverse() {
            true => (back.unwrap_or_else(|| BACKGROUND.to_owned()), Some(front)),
            false => (front, back),
        };
        if let Some(back) = back {
            block(svg, (row, self.column, self.columns), &back);
        }
        let text = self.text.trim_end();
        let words = text.trim_start();
        if words.is_empty() {
            return;
        }
        // Blanks at its beginning are cells.
        let column = self.column + (text.len() - words.len()) as u16;
        let left = f32::from(BORDER) + f32::from(column) * WIDTH;
        let base = BORDER + row * HEIGHT + BASE;
        let mut style = String::new();
        if front != FOREGROUND {
            let _ = write!(style, " fill=\"{front}\"");
        }
        for (is_set, name) in [
            (cell.bold(), " font-weight=\"bold\""),
            (cell.dim(), " opacity=\"0.6\""),
            (cell.italic(), " font-style=\"italic\""),
            (cell.underline(), " text-decoration=\"underline\""),
        ] {
            if is_set {
                style.push_str(name);
            }
        }
        // Its length is given, so that columns stay columns in every font.
        let columns = self.columns - (column - self.column);
        let blanks = self.text.len() - text.len();
        let length = f32::from(columns - blanks as u16) * WIDTH;
        let _ = writeln!(
            svg,
            "<text x=\"{left:.1}\" y=\"{base}\" textLength=\"{length:.1}\" xml:space=\"preserve\"{style}>{}</text>",
            escaped(words)
        );
    }
}

/// Draws a block behind some columns of a row.
fn block(svg: &mut String, (row, column, columns): (u16, u16, u16), colour: &str) {
    let left = f32::from(BORDER) + f32::from(column) * WIDTH;
    let (top, width) = (BORDER + row * HEIGHT, f32::from(columns) * WIDTH);
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{colour}\"/>"
    );
}

/// Returns a colour as SVG names it; none if it is the default one.
fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(index) => Some(match COLOURS.get(usize::from(index)) {
            Some(colour) => (*colour).to_owned(),
            None => indexed(index),
        }),
    }
}

/// Returns a colour beyond the first sixteen: a cube of six steps, then greys.
fn indexed(index: u8) -> String {
    let step = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let [red, green, blue] = match index {
        232.. => [8 + 10 * (index - 232); 3],
        _ => {
            let at = index - 16;
            [step(at / 36), step(at / 6 % 6), step(at % 6)]
        }
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
