//! The mouse on a board: the wheel moves the highlight, a click chooses a line or a screen. It never
//! answers, opens or stops anything.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::action::ACTIONS;
use super::layout::{areas, first_row, is_reviewing, list_height};
use super::view::{review_row_at, screen_at};
use super::{Board, act};
use crate::terminal::WHEEL;

/// Handles what the mouse does.
pub(super) fn moved(it: &mut Board, event: MouseEvent, now_ms: i64) {
    let down = match event.kind {
        MouseEventKind::ScrollDown => true,
        MouseEventKind::ScrollUp => false,
        MouseEventKind::Down(MouseButton::Left) => return clicked(it, event, now_ms),
        _ => return,
    };
    if let Some(first) = it.help {
        it.help = Some(match down {
            true => (first + WHEEL).min(ACTIONS.len() - 1),
            false => first.saturating_sub(WHEEL),
        });
    } else if is_free(it) {
        act::scroll(it, WHEEL, down, now_ms);
    }
}

/// Returns true if nothing is open that waits for a key.
fn is_free(it: &Board) -> bool {
    let waits = it.line.is_some() || it.confirm.is_some() || it.questions.is_open();
    it.help.is_none() && !waits
}

fn clicked(it: &mut Board, event: MouseEvent, now_ms: i64) {
    if !is_free(it) {
        return;
    }
    let row = usize::from(event.row);
    if row < areas(it).head {
        if let Some(screen) = screen_at(it, event.column) {
            it.notice = None;
            act::show(it, screen, now_ms);
        }
        return;
    }
    let row = row.checked_sub(first_row(it));
    if let Some(row) = row.filter(|row| *row < list_height(it)) {
        it.notice = None;
        let number = match is_reviewing(it) {
            true => review_row_at(it, row),
            false => act::line_at(it, row),
        };
        if let Some(number) = number {
            act::go(it, number, now_ms);
        }
    }
}
