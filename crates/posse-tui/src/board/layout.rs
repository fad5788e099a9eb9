//! How the rows of the screen are divided: a head, a list, a pane below it, and a foot.

use posse_protocol::AgentId;

use super::agents::AgentLine;
use super::{Board, BoardScreen};

/// Number of rows from which on a list shares them with what is known of the highlighted line.
const SHARED: usize = 12;
/// Number of rows that a list keeps while the highlighted line is read.
const WHILE_READING: usize = 4;

/// The rows of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    /// 1 if there is a head, else 0.
    pub(super) head: usize,
    pub(super) list: usize,
    /// The rows below the list, for what is known of the highlighted line.
    pub(super) pane: usize,
    /// 1 if there is a foot, else 0.
    pub(super) foot: usize,
}

/// Returns how the rows of the screen are divided.
pub(super) fn areas(it: &Board) -> Areas {
    let rows = usize::from(it.size.rows).max(1);
    let is_written = it.line.is_some() || it.confirm.is_some();
    let foot = usize::from(rows >= 2 || is_written);
    let head = usize::from(rows >= 3);
    let middle = rows - foot - head;
    let pane = match it.screen {
        BoardScreen::Agents if it.peek.is_open => third(middle),
        BoardScreen::Tasks | BoardScreen::Mail if it.reads => {
            middle - WHILE_READING.min(middle / 3)
        }
        BoardScreen::Tasks | BoardScreen::Mail if middle >= SHARED => third(middle),
        BoardScreen::Questions if it.questions.is_open() => middle,
        BoardScreen::Questions if it.questions.count() > 0 => {
            middle - it.questions.count().min(middle / 3).max(middle.min(1))
        }
        BoardScreen::Worktrees if it.worktrees.review.is_some() => middle,
        _ => 0,
    };
    Areas {
        head,
        list: middle - pane,
        pane,
        foot,
    }
}

fn third(rows: usize) -> usize {
    match rows {
        0..3 => 0,
        rows => (rows / 3).max(2),
    }
}

/// Returns true while the review of a worktree is on the screen.
pub(super) fn is_reviewing(it: &Board) -> bool {
    it.screen == BoardScreen::Worktrees && it.worktrees.review.is_some()
}

/// Returns the number of rows of the list that can be highlighted.
pub(super) fn list_height(it: &Board) -> usize {
    let areas = areas(it);
    let all = if is_reviewing(it) {
        areas.pane
    } else {
        areas.list
    };
    all.saturating_sub(title_rows(it))
}

/// Returns the first row of the screen that can be highlighted.
pub(super) fn first_row(it: &Board) -> usize {
    areas(it).head + title_rows(it)
}

/// Returns the number of rows above a list that name its columns, or whose worktree is reviewed.
fn title_rows(it: &Board) -> usize {
    usize::from(it.screen == BoardScreen::Cost || is_reviewing(it))
}

/// Keeps the highlighted lines on the screen.
pub(super) fn fit(it: &mut Board) {
    let height = list_height(it);
    match it.screen {
        BoardScreen::Agents => it.agents.fit(height),
        BoardScreen::Tasks => it.tasks.fit(height),
        BoardScreen::Mail => it.mail.fit(height),
        BoardScreen::Cost => it.costs.fit(height),
        BoardScreen::Questions => it.questions.fit(height),
        BoardScreen::Worktrees => it.worktrees.fit(it.size.columns, height),
    }
}

/// Returns the lines of the agents' list that are on the screen.
pub(super) fn visible_lines(it: &Board) -> Vec<AgentLine> {
    let first = it.agents.cursor().offset();
    let numbers = first..first.saturating_add(list_height(it));
    numbers.map_while(|number| it.agents.line(number)).collect()
}

/// Returns the agents that are on the screen.
pub(super) fn visible_agents(it: &Board) -> Vec<AgentId> {
    let agents = visible_lines(it).into_iter().filter_map(|line| match line {
        AgentLine::Agent(agent) => Some(agent),
        AgentLine::Title(_) => None,
    });
    agents.collect()
}
