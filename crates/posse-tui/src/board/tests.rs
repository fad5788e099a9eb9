//! Boards: what keys and news do to them.

mod agents;
mod chords;
mod mouse;
mod palette;
mod questions;
mod random;
mod screens;
mod still;
mod worktrees;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::buffer::{Buffer, Cell};
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::conversation::{SETTLE_MS, Sign};

/// A board and the time.
struct Desk {
    board: Board,
    now_ms: i64,
}

impl Desk {
    fn new(columns: u16, rows: u16) -> Self {
        let board = Board::new(BoardBeginning {
            size: Size { columns, rows },
            title: "parser".into(),
            scope: Scope::Session,
            screen: BoardScreen::Agents,
            keys: BoardKeys::default(),
        });
        Self {
            board,
            now_ms: 1_700_000_000_000,
        }
    }

    fn input(&mut self, input: BoardInput) -> Vec<BoardEffect> {
        update(&mut self.board, input, self.now_ms)
    }

    /// Some agents are new, or have changed.
    fn agents(&mut self, changed: Vec<BoardAgent>) -> Vec<BoardEffect> {
        let gone = Vec::new();
        self.input(BoardInput::Agents { changed, gone })
    }

    fn gone(&mut self, agents: &[u128]) -> Vec<BoardEffect> {
        let gone = agents.iter().map(|number| agent(*number)).collect();
        let changed = Vec::new();
        self.input(BoardInput::Agents { changed, gone })
    }

    /// Presses keys, each by its name, and returns what is to be done.
    fn press(&mut self, names: &str) -> Vec<BoardEffect> {
        let names = names.split(' ').filter(|name| !name.is_empty());
        names
            .flat_map(|name| self.input(BoardInput::Key(named(name))))
            .collect()
    }

    /// Types text.
    fn types(&mut self, text: &str) {
        for letter in text.chars() {
            self.input(BoardInput::Key(key(KeyCode::Char(letter))));
        }
    }

    fn wait(&mut self, ms: i64) {
        self.now_ms += ms;
    }

    fn settle(&mut self) {
        self.wait(SETTLE_MS as i64);
    }

    fn frame(&mut self) -> BoardFrame {
        view(&mut self.board, self.now_ms)
    }

    fn rows(&mut self) -> Vec<String> {
        rows(&self.frame().cells)
    }

    fn text(&mut self) -> String {
        self.rows().join("\n")
    }

    fn foot(&mut self) -> String {
        self.rows().pop().unwrap()
    }

    /// Returns the row of the highlighted line.
    fn highlighted(&mut self) -> String {
        let rows = self.rows();
        let row = rows.into_iter().find(|row| row.starts_with('❯'));
        row.unwrap_or_default()
    }
}

fn agent(number: u128) -> AgentId {
    uuid::Uuid::from_u128(number).into()
}

/// An agent of the session 1, which the main agent has started.
fn at_work(number: u128, name: &str, sign: Sign) -> BoardAgent {
    BoardAgent {
        agent: agent(number),
        session: agent(1),
        parent: (number != 1).then(|| agent(1)),
        name: name.into(),
        doing: format!("does {name}"),
        sign,
        changed_ms: 1_700_000_000_000 - 12_000,
        place: format!("posse/{name}"),
        model: "opus-5-5".into(),
        waiting_mail: 0,
    }
}

fn below(parent: u128, facts: BoardAgent) -> BoardAgent {
    BoardAgent {
        parent: Some(agent(parent)),
        ..facts
    }
}

/// The board of the design: a team of six.
fn team() -> Vec<BoardAgent> {
    vec![
        at_work(1, "main", Sign::Waits),
        at_work(2, "dev-1", Sign::Working),
        below(2, at_work(3, "explore", Sign::Working)),
        at_work(4, "dev-2", Sign::Asks),
        at_work(5, "reviewer", Sign::Idle),
        at_work(6, "old", Sign::Done),
    ]
}

/// Returns the rows of a screen as text.
fn rows(cells: &Buffer) -> Vec<String> {
    let width = usize::from(cells.area.width);
    let row = |cells: &[Cell]| {
        let mut text = String::new();
        let mut covered = 0;
        for cell in cells {
            if covered > 0 {
                covered -= 1;
                continue;
            }
            covered = cell.symbol().width().saturating_sub(1);
            text.push_str(cell.symbol());
        }
        text.trim_end().to_owned()
    };
    cells.content.chunks(width).map(row).collect()
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn named(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.split_once('-') {
        Some(("Alt", rest)) => (KeyModifiers::ALT, rest),
        Some(("Ctrl", rest)) => (KeyModifiers::CONTROL, rest),
        Some(("Shift", "Tab")) => (KeyModifiers::SHIFT, "BackTab"),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PageUp" => KeyCode::PageUp,
        "PageDown" => KeyCode::PageDown,
        "Space" => KeyCode::Char(' '),
        "Backspace" => KeyCode::Backspace,
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}
