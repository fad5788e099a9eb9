//! The mouse: what it chooses, and that it does nothing else.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::*;
use crate::board::action::ACTIONS;
use crate::fixtures;

impl Desk {
    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> Vec<BoardEffect> {
        self.input(BoardInput::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        }))
    }

    /// Clicks on words that are on the screen.
    fn clicks(&mut self, words: &str) {
        let rows = self.rows();
        let row = rows.iter().position(|row| row.contains(words)).unwrap();
        let before = rows[row].split(words).next().unwrap();
        let column = before.chars().count();
        let left = MouseEventKind::Down(MouseButton::Left);
        assert_eq!(self.mouse(left, column as u16, row as u16), []);
    }
}

fn desk() -> Desk {
    let mut desk = Desk::new(120, 20);
    desk.agents(team());
    desk.frame();
    desk
}

#[test]
fn a_click_highlights_the_line_under_it() {
    let mut desk = desk();
    for name in ["reviewer", "dev-1", "WORKING", "main"] {
        desk.clicks(name);
        assert!(desk.highlighted().contains(name), "{}", desk.text());
    }
    let before = desk.text();
    // Below the last line, on the head and at the foot there is nothing to choose.
    for row in [0, 14, 19, 40] {
        desk.mouse(MouseEventKind::Down(MouseButton::Left), 3, row);
    }
    desk.mouse(MouseEventKind::Down(MouseButton::Right), 3, 2);
    desk.mouse(MouseEventKind::Up(MouseButton::Left), 3, 2);
    desk.mouse(MouseEventKind::Moved, 3, 2);
    assert_eq!(desk.text(), before);
}

#[test]
fn a_click_in_a_list_that_was_scrolled_highlights_what_is_seen() {
    let mut desk = Desk::new(80, 10);
    let agents = (1..60).map(|number| at_work(number, &format!("dev-{number:02}"), Sign::Working));
    desk.agents(agents.collect());
    desk.press("End Up Up Up");
    let rows = desk.rows();
    let name = rows[3]
        .split_whitespace()
        .find(|word| word.starts_with("dev-"));
    let name = name.unwrap().to_owned();
    desk.clicks(&name);
    assert!(desk.highlighted().contains(&name), "{}", desk.text());
    assert!(desk.rows()[3].contains('❯'), "{}", desk.text());
}

#[test]
fn a_click_in_a_review_highlights_what_is_seen_beside_a_long_line() {
    for (height, words, highlighted) in [
        // Lines above the long one have made room for it.
        (8, "40  fn", "❯   40  fn number()"),
        (8, "second;", "❯   41 +    let"),
        (12, "41 -", "❯   41 -    let n ="),
        (12, "number = first +", "❯   41 +    let"),
        (12, "42  }", "❯   42  }"),
    ] {
        let mut desk = Desk::new(20, height);
        desk.agents(team());
        worktrees::reviewed(&mut desk);
        let mut long = worktrees::review();
        long.files[1].change.hunks[0].lines[2].text = "    let number = first + second;".into();
        desk.press("r");
        desk.input(BoardInput::Review(Box::new(long)));
        desk.press("n j");
        desk.clicks(words);
        assert_eq!(desk.highlighted(), highlighted, "{words}");
    }
}

#[test]
fn a_click_on_the_name_of_a_screen_shows_it() {
    let mut desk = desk();
    for (word, screen) in [
        ("2 tasks", BoardScreen::Tasks),
        ("4 cost", BoardScreen::Cost),
        ("5 questions", BoardScreen::Questions),
        ("1 agents", BoardScreen::Agents),
        ("6 worktrees", BoardScreen::Worktrees),
        ("3 mail", BoardScreen::Mail),
        ("[3]mail", BoardScreen::Mail),
    ] {
        desk.clicks(word);
        assert_eq!(desk.board.screen(), screen, "{word}");
    }
    let mut narrow = Desk::new(30, 10);
    for column in 0..30 {
        narrow.mouse(MouseEventKind::Down(MouseButton::Left), column, 0);
        assert_eq!(narrow.board.screen(), BoardScreen::Agents);
    }
}

#[test]
fn the_wheel_moves_the_highlight() {
    let mut desk = desk();
    desk.press("Home");
    let first = desk.highlighted();
    desk.mouse(MouseEventKind::ScrollDown, 0, 0);
    let third = desk.highlighted();
    desk.press("Home Down Down Down");
    assert_eq!(desk.highlighted(), third);
    desk.mouse(MouseEventKind::ScrollUp, 0, 0);
    assert_eq!(desk.highlighted(), first);
    desk.mouse(MouseEventKind::ScrollUp, 0, 0);
    assert_eq!(desk.highlighted(), first);
    desk.press("?");
    desk.mouse(MouseEventKind::ScrollDown, 0, 0);
    assert_eq!(desk.board.help, Some(3));
    for _ in 0..40 {
        desk.mouse(MouseEventKind::ScrollDown, 0, 0);
    }
    assert_eq!(desk.board.help, Some(ACTIONS.len() - 1));
}

#[test]
fn what_waits_for_a_key_does_not_heed_the_mouse() {
    let question = BoardQuestion {
        agent: agent(4),
        session: agent(1),
        question: fixtures::question("a"),
        asked_ms: 1_700_000_000_000 - 40_000,
    };
    for (screen, keys) in [
        ("1", "x"),
        ("1", "m"),
        ("1", ":"),
        ("1", "/"),
        ("5", "Enter"),
    ] {
        let mut desk = desk();
        desk.input(BoardInput::Questions(vec![question.clone()]));
        desk.press(screen);
        desk.settle();
        desk.press(keys);
        assert_eq!(desk.board.questions.is_open(), keys == "Enter");
        let before = desk.text();
        for row in 0..20 {
            for column in [0, 3, 40, 70, 90] {
                for kind in [
                    MouseEventKind::Down(MouseButton::Left),
                    MouseEventKind::ScrollDown,
                    MouseEventKind::ScrollUp,
                ] {
                    assert_eq!(desk.mouse(kind, column, row), [], "{keys}");
                }
            }
        }
        assert_eq!(desk.text(), before, "{keys}");
    }
}
