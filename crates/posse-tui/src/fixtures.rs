//! Values for tests.

use std::fmt::Write as _;

use posse_protocol::{AgentId, Question, QuestionKind, RawJson};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};

use crate::theme::Theme;

/// Returns the main agent.
pub(crate) fn session() -> AgentId {
    uuid::Uuid::from_u128(1).into()
}

/// Returns a question about a call.
pub(crate) fn question(call: &str) -> Question {
    let number = call.bytes().map(u128::from).sum::<u128>();
    Question {
        id: uuid::Uuid::from_u128(number).into(),
        kind: QuestionKind::Permission,
        call: call.into(),
        tool: "Bash".into(),
        input: RawJson::parse(r#"{"command": "ls"}"#).unwrap(),
        why: "no rule allows it".into(),
        from: None,
        until_ms: None,
        suggestions: Vec::new(),
        shown: None,
        refused: None,
    }
}

/// Returns the runs of cells that have a style, in the terminal's own colours.
pub(crate) fn style_runs(cells: &Buffer) -> String {
    let drawn = |cell: &Cell| {
        let style = Theme::ansi().drawn(cell.style());
        (style.fg.unwrap_or_default(), style.add_modifier)
    };
    let mut text = String::new();
    let width = usize::from(cells.area.width);
    for (row, cells) in cells.content.chunks(width).enumerate() {
        for run in cells.chunk_by(|a, b| drawn(a) == drawn(b)) {
            let words: String = run.iter().map(Cell::symbol).collect();
            let (color, modifier) = drawn(&run[0]);
            if color == Color::Reset && modifier == Modifier::empty() {
                continue;
            }
            let style = format!("{color:?} {modifier:?}");
            let _ = writeln!(text, "{row}: {style}: {}", words.trim_end());
        }
    }
    text
}
