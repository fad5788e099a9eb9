//! The screen of a board: a head with counts and screens, a list, what is known of its highlighted
//! line, and a foot with the keys that work now.

mod agents;
mod columns;
mod foot;
mod head;
mod lists;
mod question;
mod worktrees;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Position;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::action::ACTIONS;
use super::layout::{self, Areas, areas};
use super::{Board, BoardScreen};
use crate::terminal::region;
use crate::text::clip;

/// The narrowest screen that is drawn for.
const NARROWEST: u16 = 4;

/// What is on the screen next.
pub struct BoardFrame {
    /// All cells.
    pub cells: Buffer,
    /// Where the cursor stands; none if it is hidden.
    pub caret: Option<Position>,
}

/// Lines of a part of the screen, and where the cursor stands in it: row and column.
#[derive(Default)]
struct DrawnPart {
    lines: Vec<Line<'static>>,
    caret: Option<(usize, u16)>,
}

/// Returns the next frame.
pub fn view(it: &mut Board, now_ms: i64) -> BoardFrame {
    let width = it.size.columns.max(NARROWEST);
    layout::fit(it);
    let areas = areas(it);
    let mut lines = Vec::with_capacity(usize::from(it.size.rows));
    let mut caret = None;
    let mut add = |part: DrawnPart, height: usize| {
        let first = lines.len();
        lines.extend(part.lines.into_iter().take(height));
        lines.resize(first + height, Line::default());
        if let Some((row, column)) = part.caret.filter(|(row, _)| *row < height) {
            caret = Some((first + row, column));
        }
    };
    if areas.head > 0 {
        let lines = vec![head::line(it, width)];
        add(DrawnPart { lines, caret: None }, areas.head);
    }
    match it.help {
        Some(first) => add(help(it, first, width), areas.list + areas.pane),
        None => {
            add(list(it, width, areas.list, now_ms), areas.list);
            add(pane(it, width, areas), areas.pane);
        }
    }
    let foot = foot::draw(it, width, areas);
    let above = foot.menu.len().min(lines.len());
    let first = lines.len() - above;
    for (line, menu) in lines.iter_mut().skip(first).zip(foot.menu) {
        *line = menu;
    }
    if areas.foot > 0 {
        let row = lines.len();
        lines.push(foot.line);
        caret = foot.caret.map(|column| (row, column)).or(caret);
    }
    BoardFrame {
        cells: region(&lines, width),
        caret: caret.map(|(row, column)| Position::new(column.min(width - 1), row as u16)),
    }
}

/// Returns the screen whose name is at a column of the first row.
pub(super) fn screen_at(it: &Board, column: u16) -> Option<BoardScreen> {
    head::screen_at(it, it.size.columns.max(NARROWEST), column)
}

/// Returns the number of the row of the review that is on a row of the screen below its title.
pub(super) fn review_row_at(it: &Board, row: usize) -> Option<usize> {
    let size = (it.size.columns.max(NARROWEST), areas(it).pane);
    worktrees::row_at(it, size, row)
}

fn list(it: &Board, width: u16, height: usize, now_ms: i64) -> DrawnPart {
    match it.screen {
        BoardScreen::Agents => agents::draw(it, width, now_ms),
        BoardScreen::Tasks => lists::tasks(it, width, height),
        BoardScreen::Mail => lists::mail(it, width, height, now_ms),
        BoardScreen::Cost => lists::costs(it, width, height),
        BoardScreen::Questions => question::list(it, width, height, now_ms),
        BoardScreen::Worktrees => worktrees::list(it, width, height),
    }
}

fn pane(it: &mut Board, width: u16, areas: Areas) -> DrawnPart {
    if areas.pane == 0 {
        return DrawnPart::default();
    }
    match it.screen {
        BoardScreen::Agents => agents::peek(it, width, areas.pane),
        BoardScreen::Tasks => lists::task(it, width),
        BoardScreen::Mail => lists::letter(it, width),
        BoardScreen::Cost => DrawnPart::default(),
        BoardScreen::Questions => question::draw(it, width, areas.pane),
        BoardScreen::Worktrees => worktrees::review(it, width, areas.pane),
    }
}

/// Returns all keys and names.
fn help(it: &Board, first: usize, width: u16) -> DrawnPart {
    let listed: Vec<String> = ACTIONS
        .iter()
        .map(|facts| it.keys.listed(facts.action))
        .collect();
    let widest = listed.iter().map(|keys| keys.chars().count()).max();
    let names = ACTIONS.iter().map(|it| it.name.chars().count()).max();
    let is_wide = width >= 72;
    let keys = widest.filter(|_| is_wide).unwrap_or_default();
    let names = names.filter(|_| is_wide).unwrap_or_default();
    let lines = ACTIONS.iter().zip(&listed).skip(first).map(|(it, listed)| {
        let line = Line::from(vec![
            Span::styled(format!("  {listed:<keys$}"), Style::new().bold()),
            Span::raw(format!("  :{:<names$}", it.name)),
            Span::styled(format!("  {}", it.about), Style::new().dim()),
        ]);
        clip(&line, width)
    });
    DrawnPart {
        lines: lines.collect(),
        caret: None,
    }
}

/// Returns a line that begins a pane.
fn rule(title: &str, width: u16) -> Line<'static> {
    let mut line = Line::styled(format!("─ {title} "), Style::new().dim());
    let rest = usize::from(width).saturating_sub(line.width());
    line.push_span(Span::raw("─".repeat(rest)));
    clip(&line, width)
}
