//! Tasks, messages and costs.

use posse_protocol::{MailKind, Task, TaskStatus};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::columns::{age, fitted, mark, right, tokens};
use super::{DrawnPart, rule};
use crate::board::cursor::ListCursor;
use crate::board::rows::{Keyed, RowList};
use crate::board::tasks::TaskLine;
use crate::board::{Board, BoardMail, CostRow};
use crate::text::{clip, one_line, tame, wrap};
use crate::theme::ColorRole;

/// Returns the rows of a list that are on the screen.
pub(super) fn rows<T: Keyed>(
    list: &RowList<T>,
    (width, height): (u16, usize),
    empty: &'static str,
    draw: impl Fn(&T, bool) -> Line<'static>,
) -> DrawnPart {
    let cursor: &ListCursor<T::Key> = list.cursor();
    let mut part = DrawnPart::default();
    let shown = list.rows().iter().enumerate();
    for (at, row) in shown.skip(cursor.offset()).take(height) {
        let is_highlighted = at == cursor.at();
        if is_highlighted {
            part.caret = Some((part.lines.len(), 0));
        }
        part.lines.push(clip(&draw(row, is_highlighted), width));
    }
    if part.lines.is_empty() {
        let line = Line::styled(empty, Style::new().dim());
        part.lines.push(clip(&line, width));
    }
    part
}

/// Returns the tasks.
pub(super) fn tasks(it: &Board, width: u16, height: usize) -> DrawnPart {
    let draw = |line: &TaskLine, is_highlighted| match line {
        TaskLine::Title {
            label, done, count, ..
        } => {
            let (mark, _) = mark(is_highlighted);
            Line::from(vec![
                mark,
                Span::styled(label.clone(), Style::new().bold()),
                Span::styled(format!(" {done} of {count} done"), Style::new().dim()),
            ])
        }
        TaskLine::Task { task, depth, .. } => task_row(task, *depth, is_highlighted, width),
    };
    rows(&it.tasks, (width, height), "  there are no tasks", draw)
}

fn task_row(task: &Task, depth: usize, is_highlighted: bool, width: u16) -> Line<'static> {
    let (mark, style) = mark(is_highlighted);
    let (sign, state) = status(task);
    let dim = Style::new().dim();
    let indent = match width {
        0..60 => String::new(),
        _ => "  ".repeat(depth),
    };
    let wide = width >= 60;
    let subject_width = match wide {
        true => (usize::from(width) / 2).saturating_sub(indent.len()),
        false => usize::from(width),
    };
    let number = format!("#{} ", task.id);
    let subject = one_line(&task.subject);
    let subject = match wide {
        true => fitted(&subject, subject_width.saturating_sub(number.len())),
        false => subject,
    };
    let mut line = Line::from(vec![
        mark,
        Span::raw(indent),
        Span::styled(format!("{sign} "), state),
        Span::styled(format!("{number}{subject}"), style),
    ]);
    if wide {
        let facts = task_facts(task).join(" · ");
        line.push_span(Span::styled(format!(" {facts}"), dim));
    }
    line
}

/// Returns the sign and the style of how far a task is.
fn status(task: &Task) -> (&'static str, Style) {
    match task.status {
        TaskStatus::Pending if task.waits_for.is_empty() => ("○", Style::new()),
        TaskStatus::Pending => ("◌", ColorRole::Waiting.style()),
        TaskStatus::InProgress => ("●", ColorRole::Good.style()),
        TaskStatus::Completed => ("✓", Style::new()),
        TaskStatus::Deleted => ("✗", ColorRole::Bad.style()),
    }
}

/// Returns what else is known of a task, in words.
fn task_facts(task: &Task) -> Vec<String> {
    let mut facts = Vec::new();
    facts.push(match task.status {
        TaskStatus::Pending if !task.waits_for.is_empty() => {
            let numbers = task.waits_for.iter().map(|id| format!(" #{id}"));
            format!("waits{}", numbers.collect::<String>())
        }
        TaskStatus::Pending => "open".to_owned(),
        TaskStatus::InProgress => "in progress".to_owned(),
        TaskStatus::Completed => "done".to_owned(),
        TaskStatus::Deleted => "deleted".to_owned(),
    });
    let owner = task.owner.as_ref().map(|owner| one_line(&owner.name));
    facts.extend(owner);
    let lost = task.lost_by.as_deref();
    facts.extend(lost.map(|name| format!("lost by {}", one_line(name))));
    let role = task.role.as_deref();
    facts.extend(role.map(|role| format!("for {}", one_line(role))));
    let check = task.check.as_deref();
    facts.extend(check.map(|check| format!("check {}", one_line(check))));
    facts
}

/// Returns all that is known of the highlighted task.
pub(super) fn task(it: &Board, width: u16) -> DrawnPart {
    let Some(task) = it.tasks.highlighted().and_then(TaskLine::task) else {
        return DrawnPart::default();
    };
    let mut lines = vec![rule(&format!("#{}", task.id), width)];
    let bold = Style::new().bold();
    lines.extend(words(&task.subject, bold, width));
    let facts = task_facts(task).join(" · ");
    lines.extend(words(&facts, Style::new().dim(), width));
    lines.extend(words(&task.description, Style::new(), width));
    DrawnPart { lines, caret: None }
}

/// Returns the messages.
pub(super) fn mail(it: &Board, width: u16, height: usize, now_ms: i64) -> DrawnPart {
    let draw = |mail: &BoardMail, is_highlighted| {
        let (mark, style) = mark(is_highlighted);
        let (sign, word) = match mail.is_waiting {
            true => ("◌", "waits"),
            false => ("✓", "shown"),
        };
        let wide = width >= 60;
        let who = format!(
            "{} → {}",
            one_line(mail.from.name()),
            one_line(&mail.to_name)
        );
        let mut line = Line::from(vec![mark, Span::raw(format!("{sign} "))]);
        let name_width = usize::from(width / 3).clamp(12, 36);
        line.push_span(Span::styled(fitted(&who, name_width), style));
        if wide {
            let since = age(now_ms.saturating_sub(mail.at_ms));
            line.push_span(Span::raw(format!(
                " {} {}",
                fitted(word, 6),
                fitted(&since, 5)
            )));
        }
        let text = match mail.summary.is_empty() {
            true => one_line(mail.body.lines().next().unwrap_or_default()),
            false => one_line(&mail.summary),
        };
        let dim = Style::new().dim();
        line.push_span(Span::styled(format!(" {}{text}", kind(mail.kind)), dim));
        line
    };
    rows(&it.mail, (width, height), "  there are no messages", draw)
}

/// Returns a word for messages that are not mere words.
fn kind(kind: MailKind) -> String {
    match kind {
        MailKind::Text => String::new(),
        kind => format!("[{}] ", kind.as_str().replace('_', " ")),
    }
}

/// Returns the highlighted message.
pub(super) fn letter(it: &Board, width: u16) -> DrawnPart {
    let Some(mail) = it.mail.highlighted() else {
        return DrawnPart::default();
    };
    let title = format!(
        "{} → {}",
        one_line(mail.from.name()),
        one_line(&mail.to_name)
    );
    let mut lines = vec![rule(&title, width)];
    // A summary is often how the text begins.
    if !mail.body.starts_with(&mail.summary) {
        lines.extend(words(&mail.summary, Style::new().bold(), width));
    }
    lines.extend(words(&mail.body, Style::new(), width));
    DrawnPart { lines, caret: None }
}

/// Returns text as lines.
fn words(text: &str, style: Style, width: u16) -> Vec<Line<'static>> {
    let text = tame(text);
    let lines = text
        .lines()
        .map(|line| Line::styled(line.to_owned(), style));
    let lines = lines.flat_map(|line| wrap(&line, width, 0));
    lines.map(|line| clip(&line, width)).collect()
}

/// Returns what was spent. Names and money are on the narrowest screens, too.
pub(super) fn costs(it: &Board, width: u16, height: usize) -> DrawnPart {
    let mut part = rows(
        &it.costs,
        (width, height.saturating_sub(1)),
        "  nothing was spent",
        |row: &CostRow, is_highlighted| {
            let (mark, style) = mark(is_highlighted);
            let cost = row
                .cost
                .map_or_else(|| "?".to_owned(), |cost| cost.to_string());
            let written = row
                .usage
                .cache_write_5m
                .saturating_add(row.usage.cache_write_1h);
            let numbers = [
                row.usage.input,
                row.usage.cache_read,
                written,
                row.missed,
                row.usage.output,
            ];
            let words = [one_line(&row.model), row.purpose.as_str().to_owned()];
            let name = (one_line(&row.name), style);
            cost_line(mark, name, &words, &numbers.map(tokens), &cost, width)
        },
    );
    let titles = ["input", "read", "written", "missed", "output"].map(str::to_owned);
    let words = ["model", "for"].map(str::to_owned);
    let bold = Style::new().bold();
    let name = ("agent".to_owned(), bold);
    let mut title = cost_line(Span::raw("  "), name, &words, &titles, "cost", width);
    title.style = bold;
    part.lines.insert(0, clip(&title, width));
    part.caret = part.caret.map(|(row, column)| (row + 1, column));
    part
}

fn cost_line(
    mark: Span<'static>,
    (name, style): (String, Style),
    words: &[String; 2],
    numbers: &[String; 5],
    cost: &str,
    width: u16,
) -> Line<'static> {
    let all = usize::from(width).saturating_sub(2);
    let numbers_width = if width >= 90 { 9 } else { 0 };
    let words_width = if width >= 60 { 14 } else { 0 };
    let taken = 10 + numbers_width * 5 + words_width * 2;
    let name_width = all.saturating_sub(taken).max(6);
    let mut line = Line::from(vec![mark, Span::styled(fitted(&name, name_width), style)]);
    let mut add = |text: String, style| line.push_span(Span::styled(text, style));
    for word in words.iter().filter(|_| words_width > 0) {
        add(
            format!(" {}", fitted(word, words_width - 1)),
            Style::new().dim(),
        );
    }
    for number in numbers.iter().filter(|_| numbers_width > 0) {
        add(
            format!(" {}", right(number, numbers_width - 1)),
            Style::new(),
        );
    }
    add(format!(" {}", right(cost, 9)), Style::new());
    line
}
