//! What bytes do to a terminal with two screens.

use proptest::prelude::*;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Style};

use super::*;
use crate::terminal::RESTORE;

fn terminal(columns: u16, rows: u16) -> vt100::Parser {
    let size = |length: u16| std::num::NonZeroU16::new(length).unwrap();
    vt100::Parser::new(size(rows), size(columns), 100)
}

fn cells(columns: u16, rows: u16, texts: &[(u16, u16, String, u8)]) -> Buffer {
    let mut cells = Buffer::empty(Rect::new(0, 0, columns, rows));
    for (column, row, text, color) in texts {
        let (x, y) = (column % columns, row % rows);
        let style = Style::new().fg(Color::Indexed(*color));
        cells.set_stringn(x, y, text, usize::from(columns - x), style);
    }
    cells
}

/// The screen shows exactly these cells.
#[track_caller]
fn check(parser: &vt100::Parser, cells: &Buffer, caret: Option<Position>) {
    let screen = parser.screen();
    for row in 0..cells.area.height {
        let mut column = 0;
        while column < cells.area.width {
            let cell = &cells[(column, row)];
            let shown = screen.cell(row, column).unwrap();
            let text = match shown.contents() {
                "" => " ",
                text => text,
            };
            assert_eq!(text, cell.symbol(), "row {row}, column {column}");
            if let (true, Color::Indexed(color)) = (cell.symbol() != " ", cell.fg) {
                assert_eq!(shown.fgcolor(), vt100::Color::Idx(color));
            }
            column += if shown.is_wide() { 2 } else { 1 };
        }
    }
    assert_eq!(screen.hide_cursor(), caret.is_none());
    if let Some(caret) = caret {
        assert_eq!(screen.cursor_position(), (caret.y, caret.x));
    }
}

/// All that a terminal shows and is set to.
fn everything(parser: &vt100::Parser) -> (String, bool, (u16, u16)) {
    let screen = parser.screen();
    let cursor = screen.cursor_position();
    (screen.state_formatted(), screen.alternate_screen(), cursor)
}

fn first_screen() -> vt100::Parser {
    let mut parser = terminal(30, 6);
    parser.process("$ posse board\r\nhello \x1b[31mred\x1b[0m 漢字\r\n$ ".as_bytes());
    parser
}

fn shown(screen: &mut FullScreen) -> Vec<u8> {
    let texts = [
        (0, 0, "a board".to_owned(), 2),
        (3, 4, "漢字".to_owned(), 3),
    ];
    let mut bytes = screen.enter();
    bytes.extend(screen.draw(cells(30, 6, &texts), Some(Position::new(2, 3))));
    bytes
}

#[test]
fn leaving_gives_the_terminal_back() {
    let mut parser = first_screen();
    let before = everything(&parser);
    let mut screen = FullScreen::new(Theme::ansi());
    parser.process(&shown(&mut screen));
    assert!(parser.screen().alternate_screen());
    assert!(parser.screen().contents().starts_with("a board"));
    parser.process(&screen.leave());
    assert_eq!(everything(&parser), before);
}

#[test]
fn what_restores_a_terminal_leaves_the_alternate_screen() {
    let mut parser = first_screen();
    let before = everything(&parser);
    let mut screen = FullScreen::new(Theme::ansi());
    let bytes = shown(&mut screen);
    // In the middle of a frame, at the end of some sequence.
    let cut = bytes.len() - 12;
    parser.process(&bytes[..cut]);
    parser.process(RESTORE.as_bytes());
    assert_eq!(everything(&parser), before);
}

#[test]
fn what_restores_a_terminal_does_not_move_a_cursor_that_never_left() {
    let mut parser = first_screen();
    // A program before posse was on the alternate screen, and the cursor was elsewhere then.
    parser.process(b"\x1b[H\x1b[?1049h\x1b[?1049l\x1b[4;3H");
    let before = everything(&parser);
    parser.process(RESTORE.as_bytes());
    assert_eq!(everything(&parser), before);
}

// Whatever ends posse, a shell that knows no mouse gets no bytes of one.
#[test]
fn the_mouse_is_told_of_on_this_screen_alone() {
    let mode = |parser: &vt100::Parser| parser.screen().mouse_protocol_mode();
    let encoding = |parser: &vt100::Parser| parser.screen().mouse_protocol_encoding();
    let mut parser = first_screen();
    let before = everything(&parser);
    let mut screen = FullScreen::new(Theme::ansi());
    parser.process(&screen.enter());
    assert_eq!(mode(&parser), vt100::MouseProtocolMode::None);
    parser.process(&screen.leave());
    for leaves in [true, false] {
        let mut screen = FullScreen::new(Theme::ansi()).with_mouse();
        parser.process(&shown(&mut screen));
        assert_eq!(mode(&parser), vt100::MouseProtocolMode::PressRelease);
        assert_eq!(encoding(&parser), vt100::MouseProtocolEncoding::Sgr);
        match leaves {
            true => parser.process(&screen.leave()),
            false => parser.process(RESTORE.as_bytes()),
        }
        assert_eq!(everything(&parser), before);
        assert_eq!(mode(&parser), vt100::MouseProtocolMode::None);
        assert_eq!(encoding(&parser), vt100::MouseProtocolEncoding::Default);
    }
}

#[test]
fn a_frame_that_is_there_is_not_written() {
    let mut screen = FullScreen::new(Theme::ansi());
    shown(&mut screen);
    let texts = [
        (0, 0, "a board".to_owned(), 2),
        (3, 4, "漢字".to_owned(), 3),
    ];
    let caret = Some(Position::new(2, 3));
    assert_eq!(screen.draw(cells(30, 6, &texts), caret), b"");
    let moved = screen.draw(cells(30, 6, &texts), Some(Position::new(2, 4)));
    assert!(moved.len() < 40, "{}", moved.len());
    // After another program had the terminal, everything is drawn again.
    screen.enter();
    assert!(screen.draw(cells(30, 6, &texts), caret).len() > 60);
}

fn texts() -> impl Strategy<Value = Vec<(u16, u16, String, u8)>> {
    let text = prop_oneof![
        "[a-z ]{1,20}",
        Just("漢字かな".to_owned()),
        Just("e\u{301}é".to_owned()),
        Just(" ".repeat(40)),
    ];
    prop::collection::vec((0..60u16, 0..20u16, text, 0..232u8), 0..12)
}

proptest! {
    #[test]
    fn the_screen_is_what_was_drawn_last(
        frames in prop::collection::vec(
            (prop::option::weighted(0.2, (1..50u16, 1..14u16)), texts(), any::<bool>()),
            1..30,
        ),
    ) {
        let mut size = (30, 8);
        let mut parser = terminal(size.0, size.1);
        let mut screen = FullScreen::new(Theme::ansi());
        parser.process(&screen.enter());
        for (new_size, texts, has_caret) in frames {
            if let Some(new_size) = new_size {
                size = new_size;
                let length = |length: u16| std::num::NonZeroU16::new(length).unwrap();
                parser.screen_mut().set_size(length(size.1), length(size.0));
            }
            let cells = cells(size.0, size.1, &texts);
            let caret = has_caret.then(|| Position::new(size.0 / 2, size.1 / 2));
            let bytes = screen.draw(cells.clone(), caret);
            let text = String::from_utf8(bytes.clone()).unwrap();
            prop_assert!(!text.contains("\x1b[2J"));
            prop_assert!(text.is_empty() || text.ends_with("\x1b[?2026l"));
            parser.process(&bytes);
            check(&parser, &cells, caret);
        }
    }
}
