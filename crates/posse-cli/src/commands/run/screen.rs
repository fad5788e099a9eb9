//! Where things are written: results on stdout, notes on stderr, and at the foot of a terminal how a team stands.

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};

use super::face::Said;
use super::panel::Panel;
use crate::output::{print, say, say_to_person};
use crate::transcript::breadth;

/// What is on the terminal.
#[derive(Default)]
pub(super) struct Screen {
    panel: Option<Box<Panel>>,
    /// How wide the lines of the panel are that are shown now.
    shown: Vec<usize>,
}

impl Screen {
    /// Writes one thing, above the panel. An error means that nobody reads stdout any more.
    pub(super) fn write(&mut self, said: Said) -> io::Result<()> {
        self.erase();
        let written = match said {
            Said::Note(note) => {
                say(&format!("\x1b[2m{note}\x1b[0m"));
                Ok(())
            }
            Said::Aside(note) => {
                say_to_person(&note);
                Ok(())
            }
            Said::Out(text) => print(text.as_bytes()),
            Said::Panel(panel) => {
                self.panel = Some(panel);
                Ok(())
            }
        };
        self.draw();
        written
    }

    /// Takes the panel away for good.
    pub(super) fn clear(&mut self) {
        self.erase();
        self.panel = None;
    }

    fn draw(&mut self) {
        let (Some(panel), Some((columns, rows))) = (&self.panel, window()) else { return };
        let lines = panel.lines(columns, rows);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.shown =
            lines.iter().map(|line| breadth(&anstream::adapter::strip_str(line).to_string())).collect();
        let _ = anstream::stderr().lock().write_all(text.as_bytes());
    }

    fn erase(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        if let (false, Some((columns, _))) = (shown.is_empty(), window()) {
            let up = rows_of(&shown, columns);
            let _ = anstream::stderr().lock().write_all(format!("\r\x1b[{up}A\x1b[J").as_bytes());
        }
    }
}

/// How many rows lines take that were drawn for a wider window.
fn rows_of(lines: &[usize], columns: usize) -> usize {
    lines.iter().map(|breadth| breadth.div_ceil(columns.max(1)).max(1)).sum()
}

/// The size of the terminal at stderr, if there is one that can be drawn on: not where colours are unwanted.
fn window() -> Option<(usize, usize)> {
    let err = io::stderr();
    if AutoStream::choice(&err) == ColorChoice::Never {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(err).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some((columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_became_narrow_shows_lines_on_several_rows() {
        assert_eq!(rows_of(&[10, 0, 21], 80), 3);
        assert_eq!(rows_of(&[10, 0, 21], 10), 1 + 1 + 3);
        assert_eq!(rows_of(&[3], 0), 3);
    }
}
