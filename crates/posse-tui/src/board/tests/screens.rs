//! Every screen of a board, at several sizes, as text and styles, and as bytes without colour.

mod scenes;
mod worktree_scenes;

use std::fmt::Write as _;

use super::*;
use crate::fixtures::style_runs;
use crate::terminal::FullScreen;
use crate::text::tame::tests::PAYLOADS;
use crate::theme::Theme;

const SIZES: [(u16, u16); 4] = [(120, 40), (80, 24), (40, 12), (20, 5)];

/// Compares a screen at all sizes with how it looked when somebody last looked at it.
fn check(name: &str, scene: impl Fn(&mut Desk)) {
    let mut text = String::new();
    for (columns, rows) in SIZES {
        let mut desk = Desk::new(columns, rows);
        scene(&mut desk);
        let frame = desk.frame();
        let _ = writeln!(text, "── {columns} × {rows} ──");
        text.push_str(&drawn(&frame));
    }
    let mut desk = Desk::new(80, 24);
    scene(&mut desk);
    let _ = write!(
        text,
        "── styles at 80 ──\n{}",
        style_runs(&desk.frame().cells)
    );
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
    check_without_colour(&scene);
}

/// Without colour, everything but colour is there.
fn check_without_colour(scene: &impl Fn(&mut Desk)) {
    let shown = |theme| {
        let mut desk = Desk::new(80, 24);
        scene(&mut desk);
        let frame = desk.frame();
        let size = |length: u16| std::num::NonZeroU16::new(length).unwrap();
        let mut parser = vt100::Parser::new(size(24), size(80), 0);
        let mut screen = FullScreen::new(theme);
        parser.process(&screen.enter());
        parser.process(&screen.draw(frame.cells, frame.caret));
        parser
    };
    let (with, without) = (shown(Theme::ansi()), shown(Theme::mono()));
    let (with, without) = (with.screen(), without.screen());
    assert_eq!(with.contents(), without.contents());
    assert_eq!(with.cursor_position(), without.cursor_position());
    for row in 0..24 {
        for column in 0..80 {
            let cell = without.cell(row, column).unwrap();
            assert_eq!(cell.fgcolor(), vt100::Color::Default);
            assert_eq!(cell.bold(), with.cell(row, column).unwrap().bold());
        }
    }
}

/// Returns a screen as text; the cursor's row is marked, its column is at its end.
fn drawn(frame: &BoardFrame) -> String {
    let mut text = String::new();
    for (row, line) in rows(&frame.cells).iter().enumerate() {
        let caret = frame.caret.filter(|caret| usize::from(caret.y) == row);
        let mark = if caret.is_some() { '▸' } else { '│' };
        let column = caret.map_or_else(String::new, |caret| format!("  ◂{}", caret.x));
        let _ = writeln!(text, "{mark} {line}{column}");
    }
    text
}

// proves UI-10
#[test]
fn nothing_from_outside_reaches_the_terminal_but_cells() {
    // The largest screen takes most of the time, and shows nothing else.
    for (columns, rows) in SIZES.into_iter().skip(1) {
        for payload in PAYLOADS {
            let mut desk = Desk::new(columns, rows);
            scenes::everything(&mut desk, payload);
            let size = |length: u16| std::num::NonZeroU16::new(length).unwrap();
            let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
            let mut screen = FullScreen::new(Theme::ansi());
            parser.process(&screen.enter());
            for keys in [
                "1",
                "p",
                "x",
                "Esc 2",
                "Enter",
                "Esc 3 Enter",
                "Esc 4",
                "5",
                "Enter",
                "Esc m",
                "Esc 6",
                "Down x",
                "n c",
                "Esc Esc y",
            ] {
                desk.press(keys);
                desk.settle();
                let frame = desk.frame();
                let cells = frame.cells.content.iter();
                assert!(
                    !cells
                        .clone()
                        .any(|cell| cell.symbol().contains(char::is_control))
                );
                let bytes = screen.draw(frame.cells.clone(), frame.caret);
                parser.process(&bytes);
                let on_terminal = parser.screen().rows(0, columns);
                let on_terminal: Vec<String> =
                    on_terminal.map(|row| row.trim_end().to_owned()).collect();
                assert_eq!(on_terminal, super::rows(&frame.cells), "{payload:?}");
            }
            parser.process(&screen.leave());
            assert!(!parser.screen().alternate_screen());
            assert_eq!(parser.screen().contents(), "");
        }
    }
}
