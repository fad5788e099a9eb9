//! The live region at the foot of the screen, from top to bottom: the open end of the reply, calls
//! that run, everybody else, the question, the menu, the prompt, the status.

mod calls;
pub(super) mod question;
mod status;
mod strip;

pub(crate) use self::question::content as question_content;
pub(super) use self::question::in_full as question_in_full;
pub(super) use self::status::elapsed;
use ratatui_core::layout::Position;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::Conversation;
use super::chooser::Chooser;
use super::help;
use super::menu::{self, Menu};
use crate::edit::{EditBuffer, RowSpan};
use crate::terminal::{Frame, region};
use crate::text::clip;
use crate::theme::ColorRole;

/// Number of rows that the live region has at most.
const MOST_ROWS: usize = 16;
/// Number of rows with a question on a low screen: who asks, what, the keys, the prompt, the status.
const QUESTION_ROWS: usize = 6;
/// Number of rows of a question beside a menu.
const BESIDE_ROWS: usize = 3;
/// Number of rows that the prompt has at most.
const PROMPT_ROWS: usize = 8;
/// The width of the live region while the size of the screen changes.
const RESIZING: u16 = 38;

/// The narrowest screen on which keys are a table.
const ALIGNED: u16 = 72;
/// The narrowest screen that is drawn for.
const NARROWEST: u16 = 4;

/// Returns the next frame, with the lines that are printed above the live region.
pub fn view(it: &mut Conversation, now_ms: u64) -> Frame {
    let width = it.width().max(NARROWEST);
    let printed = it.take_printed();
    let narrow = if it.is_resizing(now_ms) {
        RESIZING
    } else {
        width
    };
    let (lines, caret) = live(it, width.min(narrow), now_ms);
    Frame {
        printed,
        live: region(&lines, width),
        caret,
    }
}

/// Returns how many rows the live region has at most: half of the screen, and more for a question,
/// which must be seen to be answered.
fn most_rows(it: &Conversation) -> usize {
    let rows = usize::from(it.size.rows);
    let half = (rows / 2).clamp(3, MOST_ROWS);
    let all = rows.saturating_sub(1);
    match (it.questions.first(), it.questions.is_open) {
        (None, _) => half,
        (Some(_), false) => half.max(all.min(QUESTION_ROWS)),
        (Some(_), true) => half.max(all.min(MOST_ROWS)),
    }
}

/// Returns the lines of the live region, and where the cursor stands.
fn live(it: &Conversation, width: u16, now_ms: u64) -> (Vec<Line<'static>>, Position) {
    let most = most_rows(it);
    let asks = it.questions.first().is_some();
    let prompt_rows = match (asks, it.questions.is_open) {
        (false, _) => most - 2,
        (true, false) => most.saturating_sub(QUESTION_ROWS - 1).max(1),
        (true, true) => 1,
    };
    let (prompt, (row, column)) = match &it.chooser {
        Some(chooser) => chosen_from(chooser, it, width, most),
        None => prompt(it, width, prompt_rows.min(PROMPT_ROWS)),
    };
    let mut status = Some(status::line(it, width, now_ms));
    let is_low = asks && most < QUESTION_ROWS;
    if (is_low || it.chooser.is_some()) && it.notice.is_none() {
        status = None;
    }
    let mut room = most.saturating_sub(prompt.len() + usize::from(status.is_some()));
    let below_room = match asks {
        true => room
            .saturating_sub(BESIDE_ROWS)
            .max(1)
            .min(room.saturating_sub(1)),
        false => room,
    };
    let below = match (&it.menu, it.shows_keys) {
        (_, true) => keys(it, width, below_room),
        (Some(menu), _) => names(menu, width, below_room),
        (None, false) => Vec::new(),
    };
    room -= below.len();
    // What a person is asked comes before what they only look at.
    let question = question::draw(it, width, room);
    room -= question.lines.len();
    let mut take = |mut lines: Vec<Line<'static>>, from_end: bool| {
        if lines.len() > room {
            let cut = lines.len() - room;
            match from_end {
                true => drop(lines.drain(..cut)),
                false => lines.truncate(room),
            }
        }
        room -= lines.len();
        lines
    };
    let strip = take(strip::lines(it, width), false);
    let calls = take(calls::lines(it, width, now_ms), true);
    let mut open = it.shown.reply.open(width);
    if let Some((words, since_ms)) = it.shown.thinking.arriving() {
        let since = elapsed(now_ms.saturating_sub(since_ms));
        let line = format!("∴ thinking {since} · {words}");
        open.push(Line::styled(line, Style::new().dim()));
    }
    let open = open.iter().map(|line| clip(line, width)).collect();
    let open = take(open, true);
    let mut lines = open;
    lines.extend(calls);
    // Apart from what is said, if there is room.
    if room > 0 {
        lines.push(Line::default());
    }
    lines.extend(strip);
    // A question that is answered in words has the cursor.
    let asked = question
        .caret
        .map(|(row, column)| (lines.len() + row, column));
    lines.extend(question.lines);
    lines.extend(below);
    let (row, column) = asked.unwrap_or((lines.len() + row, column));
    lines.extend(prompt);
    lines.extend(status);
    let last = lines.len().saturating_sub(1);
    let caret = Position::new(column.min(width - 1), row.min(last) as u16);
    (lines, caret)
}

/// Returns the rows of a list from which the person chooses, with the row and column of the caret.
fn chosen_from(
    chooser: &Chooser,
    it: &Conversation,
    width: u16,
    most: usize,
) -> (Vec<Line<'static>>, (usize, u16)) {
    let rows = match (it.questions.first(), it.questions.is_open) {
        (None, _) => most - usize::from(it.notice.is_some()),
        (Some(_), false) => most.saturating_sub(BESIDE_ROWS).max(1),
        (Some(_), true) => 1,
    };
    let (lines, caret) = chooser.picker.lines(width, rows);
    (lines, (usize::from(caret.y), caret.x))
}

/// Returns the rows of the prompt, with the row and column of the caret.
fn prompt(it: &Conversation, width: u16, most: usize) -> (Vec<Line<'static>>, (usize, u16)) {
    let text = it.draft.text();
    let role = match text.chars().next() {
        Some('!') => ColorRole::Shell,
        Some('#') => ColorRole::Memory,
        _ => ColorRole::Accent,
    };
    let sign = role.style().bold();
    edited_rows(&it.draft, width, most, ("› ", sign))
}

/// Returns the rows of a text that is edited, those around the caret if there are more.
pub(crate) fn edited_rows(
    buffer: &EditBuffer,
    width: u16,
    most: usize,
    (sign, style): (&'static str, Style),
) -> (Vec<Line<'static>>, (usize, u16)) {
    let inner = usize::from(width.saturating_sub(2).max(1));
    let layout = buffer.layout(inner);
    let (caret_row, caret_column) = layout.caret;
    let first = caret_row.saturating_sub(most.saturating_sub(1));
    let count = layout.rows.len().max(caret_row + 1).min(first + most);
    let lines = (first..count).map(|number| {
        let lead = if number == first { sign } else { "  " };
        let mut line = Line::from(Span::styled(lead, style));
        for span in layout
            .rows
            .get(number)
            .into_iter()
            .flat_map(|row| buffer.spans(*row, inner))
        {
            line.push_span(match span {
                RowSpan::Text(text) => Span::raw(text.to_owned()),
                RowSpan::Chip(label) => {
                    Span::styled(label.to_owned(), ColorRole::Attachment.style())
                }
            });
        }
        line
    });
    (
        lines.collect(),
        (caret_row - first, caret_column as u16 + 2),
    )
}

/// Returns the names of the menu around the chosen one.
fn names(menu: &Menu, width: u16, most: usize) -> Vec<Line<'static>> {
    let most = most.min(menu::ROWS);
    let first = menu.chosen.saturating_sub(most.saturating_sub(1));
    let names = menu.items.iter().enumerate().skip(first).take(most);
    let widest = names
        .clone()
        .map(|(_, (name, _))| crate::text::columns(name))
        .max();
    let widest = widest.unwrap_or_default();
    names
        .map(|(at, (name, about))| {
            let (sign, style) = match at == menu.chosen {
                true => ("❯ ", ColorRole::Accent.style().bold()),
                false => ("  ", Style::new()),
            };
            let gap = " ".repeat(widest - crate::text::columns(name) + 2);
            let line = Line::from(vec![
                Span::styled(format!("{sign}{name}"), style),
                Span::styled(format!("{gap}{about}"), Style::new().dim()),
            ]);
            clip(&line, width)
        })
        .collect()
}

/// Returns keys, and where all are if these are not.
fn keys(it: &Conversation, width: u16, most: usize) -> Vec<Line<'static>> {
    let all = help::keys(&it.keys);
    let widest = all.iter().map(|(key, _)| key.chars().count()).max();
    // In a narrow terminal what they do begins right after them.
    let widest = widest.filter(|_| width >= ALIGNED).unwrap_or_default();
    let mut lines: Vec<_> = all
        .iter()
        .map(|(key, about)| {
            Line::from(vec![
                Span::styled(format!("  {key:<widest$}"), Style::new().bold()),
                Span::styled(format!("  {about}"), Style::new().dim()),
            ])
        })
        .collect();
    if lines.len() > most {
        lines.truncate(most.saturating_sub(1));
        lines.push(Line::styled("  … /help prints all", Style::new().dim()));
        lines.truncate(most);
    }
    lines.iter().map(|line| clip(line, width)).collect()
}
