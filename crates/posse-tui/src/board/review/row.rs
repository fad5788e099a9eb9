//! The rows of a review: files, lines of their changes, and comments under them.

use ratatui_core::text::Line;

use super::comment::{Comment, CommentId};
use crate::board::facts::{BoardReview, ReviewFile};
use crate::text::{numbered, tame, wrap_hard};

/// Columns before the words of a comment.
pub(in crate::board) const COMMENT_INDENT: u16 = 6;

/// A row of a review. Files, hunks and lines are named by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::board) enum ReviewRow {
    /// The name of a file.
    File(usize),
    /// What is between two hunks; the number is that of the second.
    Gap { file: usize, hunk: usize },
    /// A line of a change, and its number in the file.
    Line {
        file: usize,
        hunk: usize,
        line: usize,
        number: u64,
    },
    /// That a file has more lines.
    More(usize),
    /// A row of a comment.
    Comment { comment: CommentId, part: usize },
    /// That there are more files.
    MoreFiles,
}

/// Returns all rows of a review.
pub(super) fn rows(review: &BoardReview, comments: &[Comment], width: u16) -> Vec<ReviewRow> {
    let mut rows = Vec::new();
    let add = |rows: &mut Vec<ReviewRow>, comment: &Comment| {
        let parts = 0..comment_parts(comment, width).len();
        rows.extend(parts.map(|part| ReviewRow::Comment {
            comment: comment.id,
            part,
        }));
    };
    for (file, facts) in review.files.iter().enumerate() {
        let of_file = comments.iter();
        let of_file = of_file.filter(|it| it.place.path == facts.change.path);
        let of_file: Vec<&Comment> = of_file.collect();
        rows.push(ReviewRow::File(file));
        // Also those about lines that the file does not have any more.
        for comment in of_file.iter().filter(|it| !it.place.has_line(facts)) {
            add(&mut rows, comment);
        }
        add_lines(&mut rows, file, facts, |rows, number, line| {
            for comment in of_file.iter().filter(|it| it.place.is_line(number, line)) {
                add(rows, comment);
            }
        });
        if facts.change.left_out > 0 {
            rows.push(ReviewRow::More(file));
        }
    }
    if review.left_out > 0 {
        rows.push(ReviewRow::MoreFiles);
    }
    let is_there = |path: &str| review.files.iter().any(|file| file.change.path == path);
    for comment in comments.iter().filter(|it| !is_there(&it.place.path)) {
        add(&mut rows, comment);
    }
    rows
}

/// Adds the lines of a file, and after each whatever is said to it.
fn add_lines(
    rows: &mut Vec<ReviewRow>,
    file: usize,
    facts: &ReviewFile,
    mut add_comments: impl FnMut(&mut Vec<ReviewRow>, u64, &posse_protocol::DiffLine),
) {
    for (hunk, facts) in facts.change.hunks.iter().enumerate() {
        if hunk > 0 {
            rows.push(ReviewRow::Gap { file, hunk });
        }
        for (line, (number, facts)) in numbered(facts).enumerate() {
            rows.push(ReviewRow::Line {
                file,
                hunk,
                line,
                number,
            });
            add_comments(rows, number, facts);
        }
    }
}

/// Returns the rows of a comment; at least one.
pub(super) fn comment_parts(comment: &Comment, width: u16) -> Vec<String> {
    let width = width.saturating_sub(COMMENT_INDENT).max(4);
    let begun = comment.begun.as_ref().map(|it| format!("begun: {it}"));
    let words = Some(&comment.words).filter(|it| !it.is_empty());
    let mut parts = Vec::new();
    for text in [words, begun.as_ref()].into_iter().flatten() {
        let text = tame(text);
        let lines = text.lines().map(Line::raw);
        let lines = lines.flat_map(|line| wrap_hard(&line, width));
        parts.extend(lines.map(|line| line.to_string()));
    }
    if parts.is_empty() {
        parts.push(String::new());
    }
    parts
}
