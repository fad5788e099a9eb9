//! Writes output: results on stdout, notes on stderr, and what changes at the bottom of a
//! terminal: the state of a team, or the open end of a reply.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};

use super::output_item::OutputItem;
use super::panel::Panel;
use super::terminal;
use crate::output::transcript::{fitted, width_of};
use crate::output::{broken_for_stderr, print};

/// Number of bytes for stderr that may wait for more, so that they are one write.
const WAITING: usize = 8192;

/// What is on the terminal.
#[derive(Default)]
pub(crate) struct Screen {
    panel: Option<Box<Panel>>,
    /// The end of a reply that may still change.
    open: String,
    /// What is at work, if nothing else shows it.
    live_line: String,
    /// True if a question is the last thing that was written: the person may be typing there.
    asks: bool,
    /// The lines at the bottom that were drawn last.
    drawn: Vec<String>,
    /// Widths of the lines at the bottom as they are drawn now.
    shown: Vec<usize>,
    /// For stderr, not written yet.
    text: String,
}

impl Screen {
    /// Writes an item above what is at the bottom, which is drawn again by [`draw`](Self::draw). An
    /// error means that nobody reads stdout any more.
    pub(crate) fn write(&mut self, item: OutputItem) -> io::Result<()> {
        let mut words = String::new();
        match item {
            OutputItem::Note(note) => self.note(&note),
            OutputItem::TerminalNote(note) if io::stderr().is_terminal() => {
                self.note(&note);
            }
            // Only a person can act on it now.
            OutputItem::TerminalNote(_) => {}
            OutputItem::Ask(question) => {
                self.above(&format!("{question}\n"));
                self.asks = true;
            }
            OutputItem::Shown(lines) => self.above(&lines),
            OutputItem::Out(text) => words = text,
            OutputItem::Reply { lines, open } => {
                words = lines;
                self.open = open;
            }
            OutputItem::Panel(panel) => self.panel = Some(panel),
            OutputItem::LiveLine(line) => self.live_line = line,
        }
        if !words.is_empty() {
            self.asks = false;
            self.erase();
            // stdout is another stream: what is on stderr must be erased before it is written.
            self.flush();
            return print(words.as_bytes());
        }
        if self.text.len() > WAITING {
            self.flush();
        }
        Ok(())
    }

    /// Draws what is at the bottom. Nothing flickers, since it is erased and drawn in one write.
    pub(crate) fn draw(&mut self) {
        let lines = self.bottom();
        let widths: Vec<usize> = lines.iter().map(|line| width_of(line)).collect();
        if lines == self.drawn && widths == self.shown && self.text.is_empty() {
            return;
        }
        self.erase();
        self.shown = widths;
        for line in &lines {
            self.text.push_str(line);
            self.text.push('\n');
        }
        self.drawn = lines;
        self.flush();
    }

    /// Removes what is at the bottom for good.
    pub(crate) fn clear(&mut self) {
        self.erase();
        self.flush();
        self.panel = None;
        self.open.clear();
        self.live_line.clear();
    }

    /// Adds a line for stderr, broken at words on a terminal.
    fn note(&mut self, note: &str) {
        self.above(&format!("\x1b[2m{}\x1b[0m\n", broken_for_stderr(note)));
    }

    /// Adds text for stderr.
    fn above(&mut self, text: &str) {
        self.erase();
        self.asks = false;
        self.text.push_str(text);
    }

    /// Erases what is at the bottom.
    fn erase(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        if let (Some((columns, _)), false) = (window(), shown.is_empty()) {
            let rows = rows_of(&shown, columns);
            // Not from the first column: tmux keeps a screen that is erased as a whole in its
            // history, where old states of these lines would pile up.
            self.text
                .push_str(&format!("\r\x1b[{rows}A \x1b[J\r\x1b[K"));
        }
    }

    /// Writes to stderr. Errors are ignored, since there is no other place to report them.
    fn flush(&mut self) {
        if !self.text.is_empty() {
            let has_no_colours = AutoStream::choice(&io::stderr()) == ColorChoice::Never;
            let _ = match has_no_colours && terminal::can_redraw() {
                // Only the styles: what is at the bottom must be erased without colours, too.
                true => io::stderr().write_all(without_styles(&self.text).as_bytes()),
                false => anstream::stderr().lock().write_all(self.text.as_bytes()),
            };
            self.text.clear();
        }
    }

    /// Returns the lines at the bottom, none on a terminal that cannot be drawn on.
    fn bottom(&self) -> Vec<String> {
        match (&self.panel, window()) {
            (Some(panel), Some((columns, rows))) => panel.lines(columns, rows),
            (None, Some((columns, rows))) if !self.asks => {
                let is_shown = !self.live_line.is_empty() && rows > 2 && terminal::is_in_front();
                let line = is_shown.then(|| fitted(&self.live_line, columns.saturating_sub(1)));
                let room = rows - usize::from(is_shown);
                let mut lines = last_rows(&self.open, columns, room);
                lines.extend(line.map(|line| format!("\x1b[2m{line}\x1b[0m")));
                lines
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the last lines of a text that fit the window, with a row below them for the cursor.
fn last_rows(text: &str, columns: usize, rows: usize) -> Vec<String> {
    let mut room = rows.saturating_sub(1);
    let fits = |line: &&str| {
        let taken = rows_of(&[width_of(line)], columns);
        let rest = room.checked_sub(taken);
        room = rest.unwrap_or_default();
        rest.is_some()
    };
    let mut lines: Vec<String> = (text.lines().rev().take_while(fits))
        .map(str::to_owned)
        .collect();
    lines.reverse();
    lines
}

/// Returns the number of rows of lines that were drawn for a wider window.
fn rows_of(lines: &[usize], columns: usize) -> usize {
    lines
        .iter()
        .map(|breadth| breadth.div_ceil(columns.max(1)).max(1))
        .sum()
}

/// Returns a text without its colours and other styles.
fn without_styles(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':');
        match end.map(|end| after.split_at(end)) {
            Some((_, after)) if after.starts_with('m') => rest = &after[1..],
            _ => {
                plain.push_str("\x1b[");
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Returns the size of the terminal on stderr, if it can be drawn on.
fn window() -> Option<(usize, usize)> {
    if !terminal::can_redraw() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some((columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_drawn_that_fit() {
        let shown = |rows| last_rows("one\n\x1b[1mtwo is long\x1b[0m\nthree\n", 6, rows).join("|");
        assert_eq!(shown(9), "one|\x1b[1mtwo is long\x1b[0m|three");
        assert_eq!(shown(4), "\x1b[1mtwo is long\x1b[0m|three");
        assert_eq!(
            (shown(3), shown(2), shown(1)),
            ("three".into(), "three".into(), String::new())
        );
        assert!(last_rows("", 80, 24).is_empty());
    }

    #[test]
    fn styles_are_taken_away_and_nothing_else() {
        let drawn = "\r\x1b[2A \x1b[J\x1b[1;31mred\x1b[0m \x1b[38:5:1mx\x1b[mé";
        assert_eq!(without_styles(drawn), "\r\x1b[2A \x1b[Jred xé");
        assert_eq!(without_styles("a\x1b["), "a\x1b[");
    }

    #[test]
    fn a_window_that_became_narrow_shows_lines_on_several_rows() {
        assert_eq!(rows_of(&[10, 0, 21], 80), 3);
        assert_eq!(rows_of(&[10, 0, 21], 10), 1 + 1 + 3);
        assert_eq!(rows_of(&[3], 0), 3);
    }
}
