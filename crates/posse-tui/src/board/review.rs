//! The review of a worktree: what differs from its base, line by line, and what the person says to it.

mod comment;
mod row;

use posse_protocol::{AgentId, LineChange};

use self::comment::{Comment, message};
pub(super) use self::comment::{CommentId, CommentPlace};
pub(super) use self::row::{COMMENT_INDENT, ReviewRow};
use self::row::{comment_parts, rows};
use super::cursor::ListCursor;
use super::facts::{BoardReview, ReviewFile};

/// An open review.
pub(super) struct DiffReview {
    shown: BoardReview,
    comments: Vec<Comment>,
    /// The number of comments that there ever were.
    known: u64,
    rows: Vec<ReviewRow>,
    cursor: ListCursor<ReviewRow>,
    /// The columns that the rows were made for.
    width: u16,
    /// A comment that was begun, and where.
    begun: Option<(CommentPlace, String)>,
}

/// Where the person goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewStep {
    NextHunk,
    PreviousHunk,
    NextFile,
    PreviousFile,
}

impl DiffReview {
    pub(super) fn new(shown: BoardReview) -> Self {
        let mut review = Self {
            shown,
            comments: Vec::new(),
            known: 0,
            rows: Vec::new(),
            cursor: ListCursor::default(),
            width: 80,
            begun: None,
        };
        review.make_rows();
        review
    }

    pub(super) fn agent(&self) -> AgentId {
        self.shown.agent
    }

    pub(super) fn shown(&self) -> &BoardReview {
        &self.shown
    }

    pub(super) fn rows(&self) -> &[ReviewRow] {
        &self.rows
    }

    pub(super) fn cursor(&self) -> &ListCursor<ReviewRow> {
        &self.cursor
    }

    /// Returns the number of comments that are not sent.
    pub(super) fn unsent(&self) -> usize {
        self.comments.len() + usize::from(self.begun.is_some())
    }

    /// The worktree was read again. Comments follow their lines, and so does the cursor.
    pub(super) fn read_again(&mut self, shown: BoardReview) {
        let place = self.row().and_then(|row| self.place(row));
        self.shown = shown;
        for comment in &mut self.comments {
            comment.place.follow(&self.shown.files);
        }
        self.make_rows();
        let Some(mut place) = place else { return };
        place.follow(&self.shown.files);
        let same = |row: &ReviewRow| self.place(*row).as_ref() == Some(&place);
        let file = |row: &ReviewRow| {
            self.file(*row)
                .is_some_and(|it| it.change.path == place.path)
        };
        let at = self.rows.iter().position(same);
        if let Some(at) = at.or_else(|| self.rows.iter().position(file)) {
            self.cursor.keep(self.rows.get(at).copied(), at);
        }
    }

    /// What is shown has this many columns and rows.
    pub(super) fn fit(&mut self, width: u16, height: usize) {
        if self.width != width {
            self.width = width;
            self.make_rows();
        }
        self.cursor.fit(self.rows.len(), height);
    }

    /// Highlights a row that the person chose.
    pub(super) fn go(&mut self, number: usize, height: usize) {
        let at = number.min(self.rows.len().saturating_sub(1));
        let key = self.rows.get(at).copied();
        self.cursor.go(key, at, (self.rows.len(), height));
    }

    /// Goes to the next or previous change or file. Returns false if there is none.
    pub(super) fn step(&mut self, step: ReviewStep, height: usize) -> bool {
        let at = self.cursor.at();
        let wanted = |row: &ReviewRow| match step {
            ReviewStep::NextHunk | ReviewStep::PreviousHunk => self.begins_hunk(*row),
            ReviewStep::NextFile | ReviewStep::PreviousFile => matches!(row, ReviewRow::File(_)),
        };
        let found = match step {
            ReviewStep::NextHunk | ReviewStep::NextFile => {
                let after = self.rows.iter().enumerate().skip(at + 1);
                after.into_iter().find(|(_, row)| wanted(row))
            }
            ReviewStep::PreviousHunk | ReviewStep::PreviousFile => {
                let before = self.rows.iter().enumerate().take(at);
                before.into_iter().rfind(|(_, row)| wanted(row))
            }
        };
        let found = found.map(|(at, _)| at);
        if let Some(at) = found {
            self.go(at, height);
        }
        found.is_some()
    }

    /// Returns true for the first line of a hunk that changes.
    fn begins_hunk(&self, row: ReviewRow) -> bool {
        let ReviewRow::Line { hunk, line, .. } = row else {
            return false;
        };
        let hunk = self.file(row).and_then(|file| file.change.hunks.get(hunk));
        hunk.is_some_and(|hunk| {
            let is_changed = |it: &posse_protocol::DiffLine| it.change != LineChange::Kept;
            hunk.lines.iter().position(is_changed).unwrap_or(0) == line
        })
    }

    /// Returns the highlighted row.
    fn row(&self) -> Option<ReviewRow> {
        self.rows.get(self.cursor.at()).copied()
    }

    /// Returns the file that a row is about.
    pub(super) fn file(&self, row: ReviewRow) -> Option<&ReviewFile> {
        match row {
            ReviewRow::File(file)
            | ReviewRow::Gap { file, .. }
            | ReviewRow::Line { file, .. }
            | ReviewRow::More(file) => self.shown.files.get(file),
            ReviewRow::Comment { comment, .. } => {
                let path = &self.comment(comment)?.place.path;
                self.shown.files.iter().find(|it| it.change.path == *path)
            }
            ReviewRow::MoreFiles => None,
        }
    }

    /// Returns the file that the highlighted row is about.
    pub(super) fn highlighted_file(&self) -> Option<&ReviewFile> {
        self.file(self.row()?)
    }

    /// Returns what a comment at a row would be about.
    fn place(&self, row: ReviewRow) -> Option<CommentPlace> {
        let file = self.file(row)?;
        if let ReviewRow::Comment { comment, .. } = row {
            return self.comment(comment).map(|it| it.place.clone());
        }
        let ReviewRow::Line {
            hunk, line, number, ..
        } = row
        else {
            return Some(CommentPlace::of_file(file));
        };
        let line = file.change.hunks.get(hunk)?.lines.get(line)?;
        Some(CommentPlace::of_line(file, number, line))
    }

    fn comment(&self, id: CommentId) -> Option<&Comment> {
        self.comments.iter().find(|it| it.id == id)
    }

    /// Returns what a comment at the cursor is about, and what is written there already.
    pub(super) fn comment_at_cursor(&self) -> Option<(CommentPlace, String)> {
        let row = self.row()?;
        if let ReviewRow::Comment { comment, .. } = row {
            let comment = self.comment(comment)?;
            return Some((comment.place.clone(), comment.words.clone()));
        }
        let place = self.place(row)?;
        let begun = self.begun.as_ref().filter(|(at, _)| *at == place);
        let words = begun.map(|(_, words)| words.clone()).unwrap_or_default();
        Some((place, words))
    }

    /// Returns the comment at the cursor, or the first below the highlighted line.
    pub(super) fn comment_below_cursor(&self) -> Option<CommentId> {
        let rows = self.rows.iter().skip(self.cursor.at()).take(2);
        rows.into_iter().find_map(|row| match row {
            ReviewRow::Comment { comment, .. } => Some(*comment),
            _ => None,
        })
    }

    /// Returns what a comment says.
    pub(super) fn words(&self, comment: CommentId) -> &str {
        self.comment(comment).map_or("", |it| it.words.as_str())
    }

    /// Writes a comment. `before` is what the comment said that it replaces.
    pub(super) fn write(&mut self, place: CommentPlace, before: &str, words: &str) {
        self.begun = None;
        let is_meant = |it: &&mut Comment| it.place == place && it.words == before;
        match self.comments.iter_mut().find(is_meant) {
            Some(comment) => comment.words = words.to_owned(),
            None => {
                self.known += 1;
                self.comments.push(Comment {
                    id: CommentId(self.known),
                    place,
                    words: words.to_owned(),
                });
            }
        }
        self.make_rows();
    }

    /// Keeps a comment that is begun.
    pub(super) fn keep_begun(&mut self, place: CommentPlace, words: String) {
        self.begun = (!words.trim().is_empty()).then_some((place, words));
    }

    /// Deletes a comment. The cursor stays where it stood.
    pub(super) fn delete(&mut self, comment: CommentId) {
        self.comments.retain(|it| it.id != comment);
        self.make_rows();
    }

    /// Deletes all comments.
    pub(super) fn drop_comments(&mut self) {
        self.comments.clear();
        self.begun = None;
        self.make_rows();
    }

    /// Returns all comments as a message to the agent; none if there are none.
    pub(super) fn message(&self) -> Option<String> {
        let mut order: Vec<CommentId> = Vec::new();
        for row in &self.rows {
            if let ReviewRow::Comment { comment, part: 0 } = row {
                order.push(*comment);
            }
        }
        let comments: Vec<&Comment> = order.iter().filter_map(|it| self.comment(*it)).collect();
        (!comments.is_empty()).then(|| message(&self.shown, &comments))
    }

    fn make_rows(&mut self) {
        self.rows = rows(&self.shown, &self.comments, self.width);
        self.cursor.refresh(&self.rows);
    }

    /// Returns a row of a comment as it is shown.
    pub(super) fn comment_part(&self, comment: CommentId, part: usize) -> Option<String> {
        let comment = self.comment(comment)?;
        comment_parts(&comment.words, self.width)
            .into_iter()
            .nth(part)
    }
}
