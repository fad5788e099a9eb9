//! A board of a team at work.

use posse_protocol::AgentId;
use posse_tui::board::{
    Board, BoardAgent, BoardBeginning, BoardInput, BoardKeys, BoardScreen, Scope, update, view,
};
use posse_tui::conversation::{Sign, Size};
use posse_tui::terminal::FullScreen;
use posse_tui::theme::Theme;

use crate::words::{MODEL, agent, cents};
use crate::{Failed, SIZE};

const NOW_MS: i64 = 1_790_000_000_000;

/// An agent of the board: its number and that of its parent, its name, what it does, its state,
/// its age in seconds, and what it has cost in cents.
type Row = (u128, u128, &'static str, &'static str, Sign, i64, u64);

const ROWS: [Row; 9] = [
    (
        1,
        0,
        "parse numbers with a sign",
        "waits for 3",
        Sign::Waits,
        720,
        310,
    ),
    (
        2,
        1,
        "dev-1@parser",
        "#2 mend the lexer",
        Sign::Working,
        3,
        80,
    ),
    (
        3,
        2,
        "explore",
        "look for callers of parse",
        Sign::Working,
        12,
        2,
    ),
    (
        4,
        1,
        "dev-2@parser",
        "Bash: git push origin parser",
        Sign::Asks,
        40,
        31,
    ),
    (5, 1, "reviewer@parser", "", Sign::Idle, 95, 64),
    (6, 1, "docs", "Look at the docs", Sign::Done, 300, 12),
    (7, 0, "why is the build slow?", "", Sign::Idle, 4_000, 22),
    (
        8,
        0,
        "release 0.2",
        "#4 write the changelog",
        Sign::Working,
        7,
        51,
    ),
    (9, 8, "linter", "stopped: cargo clippy", Sign::Failed, 65, 3),
];

/// Returns the bytes of a board.
pub(crate) fn busy() -> Result<Vec<u8>, Failed> {
    let mut board = Board::new(BoardBeginning {
        size: Size { rows: 17, ..SIZE },
        title: "~/parser".into(),
        scope: Scope::Directory,
        screen: BoardScreen::Agents,
        keys: BoardKeys::default(),
    });
    let inputs = [
        BoardInput::Agents {
            changed: ROWS.into_iter().map(facts).collect(),
            gone: Vec::new(),
        },
        BoardInput::Spent(
            ROWS.iter()
                .map(|row| (agent(row.0), Some(cents(row.6))))
                .collect(),
        ),
        BoardInput::Total {
            cost: Some(cents(383)),
            budget: None,
        },
    ];
    for input in inputs {
        // Nobody carries out what it wants.
        let _ = update(&mut board, input, NOW_MS);
    }
    let frame = view(&mut board, NOW_MS);
    let mut screen = FullScreen::new(Theme::ansi());
    let entered = screen.enter();
    Ok([entered, screen.draw(frame.cells, frame.caret)].concat())
}

fn facts((number, parent, name, doing, sign, age, _): Row) -> BoardAgent {
    BoardAgent {
        agent: agent(number),
        session: session(number),
        parent: (parent != 0).then(|| agent(parent)),
        name: name.into(),
        doing: doing.into(),
        sign,
        changed_ms: NOW_MS - age * 1_000,
        place: "~/parser".into(),
        model: MODEL.into(),
        waiting_mail: u64::from(number == 4),
    }
}

/// Returns the main agent of an agent's session.
fn session(number: u128) -> AgentId {
    agent(match number {
        1..=6 => 1,
        7 => 7,
        _ => 8,
    })
}
