//! Writes output: results on stdout, notes on stderr, and the state of a team at the bottom of a
//! terminal.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use posse_tui::text;

use super::output_item::OutputItem;
use super::panel::Panel;
use crate::output::print;

/// What is on the terminal.
#[derive(Default)]
pub(crate) struct Screen {
    panel: Option<Box<Panel>>,
    /// Widths of the panel's lines as they are drawn now.
    shown: Vec<usize>,
}

impl Screen {
    /// Writes an item above the panel, in one write so that nothing flickers. An error means that
    /// nobody reads stdout any more.
    pub(crate) fn write(&mut self, item: OutputItem) -> io::Result<()> {
        let mut text = self.erased();
        let mut written = Ok(());
        match item {
            OutputItem::Note(note) => text.push_str(&format!("\x1b[2m{note}\x1b[0m\n")),
            OutputItem::TerminalNote(note) if io::stderr().is_terminal() => {
                text.push_str(&format!("\x1b[2m{note}\x1b[0m\n"));
            }
            OutputItem::Ask(question) => text.push_str(&format!("{question}\n")),
            // Only a person can act on it now.
            OutputItem::TerminalNote(_) => {}
            OutputItem::Out(words) => {
                // stdout is another stream: what is on stderr must be erased before it is
                // written.
                show(&std::mem::take(&mut text));
                written = print(words.as_bytes());
            }
            OutputItem::Panel(panel) => self.panel = Some(panel),
        }
        text.push_str(&self.drawn());
        show(&text);
        written
    }

    /// Removes the panel for good.
    pub(crate) fn clear(&mut self) {
        show(&self.erased());
        self.panel = None;
    }

    /// Returns the panel, and remembers its widths.
    fn drawn(&mut self) -> String {
        let (Some(panel), Some((columns, rows))) = (&self.panel, window()) else {
            return String::new();
        };
        let lines = panel.lines(columns, rows);
        self.shown = lines
            .iter()
            .map(|line| text::columns(&anstream::adapter::strip_str(line).to_string()))
            .collect();
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns the control sequence that erases the panel.
    fn erased(&mut self) -> String {
        let shown = std::mem::take(&mut self.shown);
        match window() {
            Some((columns, _)) if !shown.is_empty() => {
                format!("\r\x1b[{}A\x1b[J", rows_of(&shown, columns))
            }
            _ => String::new(),
        }
    }
}

/// Writes to stderr. Errors are ignored, since there is no other place to report them.
fn show(text: &str) {
    if !text.is_empty() {
        let _ = anstream::stderr().lock().write_all(text.as_bytes());
    }
}

/// Returns the number of rows of lines that were drawn for a wider window.
fn rows_of(lines: &[usize], columns: usize) -> usize {
    lines
        .iter()
        .map(|breadth| breadth.div_ceil(columns.max(1)).max(1))
        .sum()
}

/// Returns the size of the terminal on stderr, if it can be drawn on: not if colours are turned
/// off.
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
