//! What bytes do to a terminal with a scrollback.

use proptest::prelude::*;
use ratatui_core::style::{Color, Style};

use super::*;
use crate::theme::ColorRole;

const ROWS: u16 = 10;
const COLUMNS: u16 = 24;

/// A terminal, and everything that was printed to it.
struct Screen {
    parser: vt100::Parser,
    terminal: InlineTerminal,
    now_ms: u64,
}

impl Screen {
    fn new() -> Self {
        let size = |length: u16| std::num::NonZeroU16::new(length).unwrap();
        Self {
            parser: vt100::Parser::new(size(ROWS), size(COLUMNS), 10_000),
            terminal: InlineTerminal::new(Theme::ansi()),
            now_ms: 0,
        }
    }

    fn draw(&mut self, printed: &[&str], live: &[&str], caret: (u16, u16)) -> usize {
        self.now_ms += 1000;
        let line = |text: &&str| Line::styled((*text).to_owned(), Style::new().fg(Color::Cyan));
        let live: Vec<Line<'static>> = live.iter().map(line).collect();
        let frame = Frame {
            printed: printed.iter().map(line).collect(),
            live: region(&live, COLUMNS),
            caret: Position::new(caret.1, caret.0),
        };
        let bytes = self.terminal.draw(frame, self.now_ms);
        self.parser.process(&bytes);
        bytes.len()
    }

    /// All rows, those of the scrollback first; what the terminal wrapped is one line.
    fn lines(&mut self) -> Vec<String> {
        let screen = self.parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let mut lines: Vec<String> = Vec::new();
        let mut continues = false;
        for offset in (0..=above).rev() {
            screen.set_scrollback(offset);
            let last = if offset == 0 { ROWS } else { 1 };
            for (row, text) in (0..last).zip(screen.rows(0, COLUMNS)) {
                match lines.last_mut() {
                    Some(line) if continues => line.push_str(&text),
                    _ => lines.push(text),
                }
                continues = screen.row_wrapped(row);
            }
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }
}

fn texts(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

#[test]
fn what_is_printed_stays_and_the_rest_is_redrawn() {
    let mut screen = Screen::new();
    screen.draw(&["one"], &["work", "> hello", "status"], (1, 7));
    assert_eq!(screen.parser.screen().cursor_position(), (2, 7));
    screen.draw(&[], &["work 2", "more", "> hello!", "status"], (2, 8));
    assert_eq!(screen.parser.screen().cursor_position(), (3, 8));
    screen.draw(&["two"], &["> ", "status"], (0, 2));
    assert_eq!(texts(&screen.lines()), ["one", "two", ">", "status"]);
    let bytes = screen
        .terminal
        .leave(&[Line::raw("bye")], COLUMNS, screen.now_ms);
    screen.parser.process(&bytes);
    assert_eq!(texts(&screen.lines()), ["one", "two", "bye"]);
    assert!(!screen.parser.screen().hide_cursor());
}

// proves UI-02 (part: nothing has changed)
#[test]
fn a_frame_that_is_there_is_not_written() {
    let mut screen = Screen::new();
    screen.draw(&[], &["> a", "status"], (0, 3));
    assert_eq!(screen.draw(&[], &["> a", "status"], (0, 3)), 0);
    let key = screen.draw(&[], &["> ab", "status"], (0, 4));
    assert!(key < 60, "{key} bytes for a key");
}

#[test]
fn a_long_line_is_one_line_to_the_terminal() {
    let mut screen = Screen::new();
    let long = "let total = first + second + third;";
    screen.draw(&[long], &["> "], (0, 2));
    screen.draw(&["next"], &["> "], (0, 2));
    assert_eq!(texts(&screen.lines()), [long, "next", ">"]);
}

#[test]
fn wide_characters_change_whole() {
    let mut screen = Screen::new();
    screen.draw(&[], &["> 漢字 a", "status"], (0, 6));
    screen.draw(&[], &["> 漢a字", "status"], (0, 6));
    assert_eq!(texts(&screen.lines()), ["> 漢a字", "status"]);
    screen.draw(&[], &["> a漢", "status"], (0, 5));
    assert_eq!(texts(&screen.lines()), ["> a漢", "status"]);
}

#[test]
fn a_long_gap_is_erased() {
    let mut screen = Screen::new();
    screen.draw(&[], &["> what was typed before", "status"], (0, 2));
    let gap = " ".repeat(18);
    let (prompt, status) = (format!("> w{gap}re"), format!("ok{gap}keys"));
    screen.draw(&[], &[&prompt, &status], (0, 2));
    assert_eq!(texts(&screen.lines()), [prompt.as_str(), status.as_str()]);
}

#[test]
fn without_colour_only_colour_is_missing() {
    let line = Line::styled("text", ColorRole::Bad.style().bold());
    let bytes = |theme| {
        let frame = Frame {
            printed: vec![line.clone()],
            live: region(&[], 10),
            caret: Position::ORIGIN,
        };
        String::from_utf8(InlineTerminal::new(theme).draw(frame, 0)).unwrap()
    };
    assert!(bytes(Theme::ansi()).contains("\x1b[0;1;31mtext"));
    assert!(bytes(Theme::mono()).contains("\x1b[0;1mtext"));
}

/// Words of a line: plain, wide, or longer than the screen.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}",
        Just("漢字かな".to_owned()),
        "[a-z]{30,60}",
        Just(String::from("e\u{301}é")),
    ]
}

proptest! {
    // proves UI-01 (part: any frames)
    #[test]
    fn everything_is_printed_once_and_in_order(
        frames in prop::collection::vec(
            (prop::collection::vec(word(), 0..4), prop::collection::vec(word(), 1..6)),
            1..40,
        ),
    ) {
        let mut screen = Screen::new();
        let mut printed = Vec::new();
        let mut number = 0;
        for (new, live) in &frames {
            let new: Vec<String> = new
                .iter()
                .map(|word| {
                    number += 1;
                    format!("{number}:{word}")
                })
                .collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            let live: Vec<&str> = live.iter().map(String::as_str).collect();
            let caret = ((live.len() / 2) as u16, 0);
            screen.draw(&new, &live, caret);
            printed.extend(new.into_iter().map(str::to_owned));
            let cut = |text: &&str| {
                let line: Line<'static> = Line::raw((*text).to_owned());
                let cells = region(&[line], COLUMNS);
                let row: String = cells.content.iter().map(Cell::symbol).collect();
                row.trim_end().replace("漢 字 か な", "漢字かな").to_owned()
            };
            let mut expected = printed.clone();
            expected.extend(live.iter().map(cut));
            prop_assert_eq!(screen.lines(), expected);
        }
    }
}
