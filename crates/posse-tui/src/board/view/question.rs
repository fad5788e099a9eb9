//! The questions that wait: a list, and the highlighted one in full.

use posse_protocol::QuestionKind;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::columns::{age, fitted, mark};
use super::{DrawnPart, rule};
use crate::board::action::Action;
use crate::board::questions::WaitingQuestion;
use crate::board::{Board, act};
use crate::conversation::{edited_rows, question_content};
use crate::question::{Typing, about, deed};
use crate::text::{clip, one_line, tame, wrap};
use crate::theme::ColorRole;

/// Number of rows of what the person writes.
const WORD_ROWS: usize = 3;

/// Returns the list of questions.
pub(super) fn list(it: &Board, width: u16, height: usize, now_ms: i64) -> DrawnPart {
    let cursor = it.questions.cursor();
    let all = it.questions.all();
    let mut part = DrawnPart::default();
    if all.is_empty() {
        let line = Line::styled("  no question waits", Style::new().dim());
        part.lines.push(clip(&line, width));
        return part;
    }
    for (at, question) in all.iter().enumerate().skip(cursor.offset()).take(height) {
        let is_highlighted = at == cursor.at();
        if is_highlighted {
            part.caret = Some((part.lines.len(), 0));
        }
        let (mark, style) = mark(is_highlighted);
        let name_width = usize::from(width / 4).clamp(10, 24);
        let since = age(now_ms.saturating_sub(question.asked_ms));
        let who = act::name(it, question.dialog.agent);
        let line = Line::from(vec![
            mark,
            Span::styled("◐ ", ColorRole::Warning.style()),
            Span::styled(fitted(&who, name_width), style),
            Span::raw(format!(" {}", fitted(&since, 5))),
            Span::styled(format!(" {}", what(question)), Style::new().dim()),
        ]);
        part.lines.push(clip(&line, width));
    }
    part
}

/// Returns what a question is about, in a line.
fn what(it: &WaitingQuestion) -> String {
    let question = it.dialog.question();
    let about = one_line(&about(question));
    match question.kind {
        QuestionKind::Choice | QuestionKind::Form => format!("asks you: {about}"),
        QuestionKind::Plan => format!("hands in a plan: {about}"),
        QuestionKind::Permission => format!("{}: {about}", one_line(&question.tool)),
    }
}

/// Returns the highlighted question in full. What it is about is cut off first; what the person
/// types is always there.
pub(super) fn draw(it: &Board, width: u16, height: usize) -> DrawnPart {
    let Some(question) = it.questions.highlighted() else {
        return DrawnPart::default();
    };
    let dialog = &question.dialog;
    let who = act::name(it, dialog.agent);
    let why = dialog.question().why.split("; allow it with").next();
    let asks = deed(dialog.question());
    let title = match dialog.question().kind {
        QuestionKind::Choice | QuestionKind::Plan | QuestionKind::Form => {
            format!("{who} {asks}")
        }
        QuestionKind::Permission => {
            format!("{who} {asks} · {}", one_line(why.unwrap_or_default()))
        }
    };
    let mut lines = vec![rule(&title, width)];
    let mut room = height.saturating_sub(1);
    let is_open = it.questions.is_open();
    let words = (it.questions.typing() == Some(Typing::Line)).then(|| {
        let sign = ("» ", ColorRole::Warning.style());
        edited_rows(&question.words, width, WORD_ROWS.min(height.max(1)), sign)
    });
    room = room.saturating_sub(words.as_ref().map_or(0, |(rows, _)| rows.len()));
    let keys = match is_open {
        true => prompt(question, width),
        false => vec![closed(it, question, width)],
    };
    let content = match dialog.is_choice() && is_open {
        true => Vec::new(),
        false => question_content(dialog, width),
    };
    // The command is seen before the keys that allow it.
    let keys = shortened(keys, room.saturating_sub(content.len().min(1)), width);
    let content = shortened(content, room - keys.len(), width);
    lines.extend(content);
    lines.extend(keys);
    let caret = words.map(|(rows, (row, column))| {
        lines.truncate(height.saturating_sub(rows.len()));
        let first = lines.len();
        lines.extend(rows);
        (first + row, column)
    });
    DrawnPart { lines, caret }
}

/// Returns what may be typed now.
fn prompt(question: &WaitingQuestion, width: u16) -> Vec<Line<'static>> {
    let lines = question.prompt.lines();
    let lines = lines.map(|line| Line::raw(tame(line).into_owned()));
    lines.flat_map(|line| wrap(&line, width, 4)).collect()
}

/// Returns the keys of a question that is not open.
fn closed(it: &Board, question: &WaitingQuestion, width: u16) -> Line<'static> {
    let key = ColorRole::Warning.style();
    let mut line = Line::raw("  ");
    let mut add = |action: Action, what: String| {
        if let Some(chord) = it.keys.0.first(action) {
            line.push_span(Span::styled(chord, key));
            line.push_span(Span::raw(format!(" {what}   ")));
        }
    };
    let dialog = &question.dialog;
    let by_key = dialog.typing() == Typing::Key;
    if by_key {
        add(Action::Yes, "yes".to_owned());
        add(Action::No, "no".to_owned());
    }
    add(Action::Open, "open".to_owned());
    let always = dialog.question().suggestions.first();
    if let Some(suggestion) = always.filter(|_| by_key) {
        let rules = one_line(&suggestion.rules.join(", "));
        add(Action::Always, format!("always {rules}"));
    }
    clip(&line, width)
}

/// Returns at most `most` lines, the last of which says how many are missing.
fn shortened(mut lines: Vec<Line<'static>>, most: usize, width: u16) -> Vec<Line<'static>> {
    let count = lines.len();
    lines.truncate(most);
    if count > most
        && most > 1
        && let Some(last) = lines.last_mut()
    {
        let text = format!("  … {} more lines", count - most + 1);
        *last = Line::styled(text, Style::new().dim());
    }
    lines.iter().map(|line| clip(line, width)).collect()
}
