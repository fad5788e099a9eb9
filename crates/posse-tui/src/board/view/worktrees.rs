//! Worktrees: a list, and the review of one.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::columns::{fitted, mark};
use super::lists::rows;
use super::{DrawnPart, rule};
use crate::board::facts::short_commit;
use crate::board::review::{COMMENT_INDENT, DiffReview, ReviewRow};
use crate::board::{Board, BoardReview, BoardWorktree, ReviewFile, WorktreeChanges, act};
use crate::text::{
    changed_file, clip, diff_line, gap, more_lines, number_columns, one_line, wrap_hard,
};
use crate::theme::ColorRole;

/// Returns the list of worktrees.
pub(super) fn list(it: &Board, width: u16, height: usize) -> DrawnPart {
    let draw = |worktree: &BoardWorktree, is_highlighted| {
        let (mark, style) = mark(is_highlighted);
        let (sign, word, color) = match worktree.is_live {
            true => ("●", "live", ColorRole::Good.style()),
            false => ("○", "ended", Style::new()),
        };
        let name = act::name(it, worktree.agent);
        let name_width = usize::from(width / 4).clamp(8, 30);
        let mut line = Line::from(vec![
            mark,
            Span::styled(format!("{sign} "), color),
            Span::styled(fitted(&name, name_width), style),
        ]);
        let (words, words_style) = changes(it.worktrees.changes(worktree.agent));
        let wide = width >= 60;
        if !wide {
            line.push_span(Span::styled(format!(" {words}"), words_style));
            return line;
        }
        line.push_span(Span::styled(format!(" {word:<5} "), Style::new().dim()));
        let words_width = usize::from(width / 3).clamp(16, 34);
        line.push_span(Span::styled(fitted(&words, words_width), words_style));
        let base = short_commit(&worktree.base);
        let place = format!(" since {base} on {}", worktree.branch);
        line.push_span(Span::styled(place, Style::new().dim()));
        line
    };
    let empty = "  no agent has a worktree";
    rows(&it.worktrees.list, (width, height), empty, draw)
}

/// Returns how much differs, in words.
fn changes(changes: Option<&WorktreeChanges>) -> (String, Style) {
    let dim = Style::new().dim();
    match changes {
        None => ("…".to_owned(), dim),
        Some(WorktreeChanges::Unreadable(why)) => (why.clone(), ColorRole::Bad.style()),
        Some(WorktreeChanges::Read {
            commits: 0,
            files: 0,
            ..
        }) => ("clean".to_owned(), dim),
        Some(WorktreeChanges::Read {
            commits,
            files,
            added,
            removed,
        }) => {
            let files = files_changed((*files, *added, *removed));
            let words = match commits {
                0 => files,
                1 => format!("1 commit · {files}"),
                count => format!("{count} commits · {files}"),
            };
            (words, Style::new())
        }
    }
}

fn files_changed((files, added, removed): (u64, u64, u64)) -> String {
    match files {
        0 => "no file differs".to_owned(),
        1 => format!("1 file +{added} −{removed}"),
        count => format!("{count} files +{added} −{removed}"),
    }
}

/// Returns the review.
pub(super) fn review(it: &Board, width: u16, height: usize) -> DrawnPart {
    let Some(review) = &it.worktrees.review else {
        return DrawnPart::default();
    };
    let name = act::name(it, review.agent());
    let mut part = DrawnPart {
        lines: vec![rule(&title(&name, review), width)],
        caret: None,
    };
    let rows = screen_rows(review, width, height.saturating_sub(1));
    let at = review.cursor().at();
    let highlighted = rows.iter().position(|(number, _)| *number == at);
    part.caret = highlighted.map(|row| (part.lines.len() + row, 0));
    part.lines.extend(rows.into_iter().map(|(_, line)| line));
    if review.rows().is_empty() {
        let line = Line::styled("  nothing differs from the base", Style::new().dim());
        part.lines.push(clip(&line, width));
    }
    part
}

/// Returns the number of the row of the review that is on a row of the screen below the title.
pub(super) fn row_at(it: &Board, (width, height): (u16, usize), row: usize) -> Option<usize> {
    let review = it.worktrees.review.as_ref()?;
    let rows = screen_rows(review, width, height.saturating_sub(1));
    rows.get(row).map(|(number, _)| *number)
}

/// Returns the rows of the screen below the title, each with the number of its row of the review. The
/// highlighted one is shown in full, however long it is: rows above it make room.
fn screen_rows(review: &DiffReview, width: u16, height: usize) -> Vec<(usize, Line<'static>)> {
    let cursor = review.cursor();
    let rows = review.rows().iter().enumerate();
    let mut lines = Vec::new();
    for (number, row) in rows.skip(cursor.offset()).take(height) {
        let is_highlighted = number == cursor.at();
        let (mark, style) = mark(is_highlighted);
        let mut line = drawn(review, *row, style);
        line.spans.insert(0, mark);
        if !is_highlighted {
            lines.push((number, clip(&line, width)));
            continue;
        }
        let mut parts = wrap_hard(&line, width);
        parts.truncate(height);
        let over = (lines.len() + parts.len()).saturating_sub(height);
        lines.drain(..over);
        lines.extend(parts.into_iter().map(|part| (number, part)));
    }
    lines
}

fn title(name: &str, review: &DiffReview) -> String {
    let shown = review.shown();
    let sum = |of: fn(&ReviewFile) -> u64| shown.files.iter().map(of).sum();
    let files = shown.files.len() as u64 + shown.left_out;
    let counts = (
        files,
        sum(|it| it.change.added),
        sum(|it| it.change.removed),
    );
    let comments = match review.unsent() {
        0 => String::new(),
        1 => " · 1 comment not sent".to_owned(),
        count => format!(" · {count} comments not sent"),
    };
    format!(
        "{name}{comments} · {} · since {} on {}",
        files_changed(counts),
        short_commit(&one_line(&shown.base)),
        one_line(&shown.branch)
    )
}

/// Returns a row without its mark.
fn drawn(review: &DiffReview, row: ReviewRow, style: Style) -> Line<'static> {
    let BoardReview { left_out, .. } = review.shown();
    let columns = || {
        review
            .file(row)
            .map_or(0, |file| number_columns(&file.change))
    };
    match row {
        ReviewRow::File(_) => review
            .file(row)
            .map(|file| file_line(file, style))
            .unwrap_or_default(),
        ReviewRow::Gap { .. } => gap(columns()),
        ReviewRow::Line {
            hunk, line, number, ..
        } => {
            let hunk = review.file(row).and_then(|it| it.change.hunks.get(hunk));
            let line = hunk.and_then(|hunk| hunk.lines.get(line));
            line.map(|line| diff_line(line, Some(number), columns()))
                .unwrap_or_default()
        }
        ReviewRow::More(_) => {
            let count = review.file(row).map_or(0, |file| file.change.left_out);
            more_lines(count)
        }
        ReviewRow::Comment { comment, part } => {
            let words = review.comment_part(comment, part).unwrap_or_default();
            let indent = " ".repeat(usize::from(COMMENT_INDENT).saturating_sub(4));
            Line::styled(format!("{indent}▌ {words}"), ColorRole::Warning.style())
        }
        ReviewRow::MoreFiles => {
            let words = format!("… {left_out} more files");
            Line::styled(words, Style::new().dim())
        }
    }
}

/// Returns the name of a file, and what happens to it.
fn file_line(file: &ReviewFile, style: Style) -> Line<'static> {
    let mut line = changed_file(&file.change);
    if let Some(name) = line.spans.first_mut() {
        name.style = style.bold();
    }
    if let Some(note) = &file.note {
        line.push_span(Span::styled(
            format!(" · {}", one_line(note)),
            Style::new().dim(),
        ));
    }
    line
}
