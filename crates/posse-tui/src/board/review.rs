//! The review of a worktree: what differs from its base, line by line, and what the person says to it.

mod comment;
mod row;

use posse_protocol::{AgentId, LineChange};

use self::comment::message;
pub(super) use self::comment::{Comment, CommentId, CommentPlace};
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

    #[cfg(test)]
    pub(super) fn comments(&self) -> &[Comment] {
        &self.comments
    }

    /// Returns the number of comments that are not sent, also those that are only begun.
    pub(super) fn unsent(&self) -> usize {
        self.comments.len()
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

    /// A place may have another line number, since the worktree was read again.
    pub(super) fn follow(&self, place: &mut CommentPlace) {
        place.follow(&self.shown.files);
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

    /// Returns the comment that is written at the cursor, what it is about, and what is written there
    /// already. It may be a new one.
    pub(super) fn comment_at_cursor(&self) -> Option<(CommentId, CommentPlace, String)> {
        let row = self.row()?;
        let place = self.place(row)?;
        let known = match row {
            ReviewRow::Comment { comment, .. } => self.comment(comment),
            _ => {
                let is_only_begun = |it: &&Comment| it.words.is_empty() && it.place == place;
                self.comments.iter().find(is_only_begun)
            }
        };
        Some(match known {
            Some(comment) => (comment.id, place, comment.continued().to_owned()),
            None => (self.next_id(), place, String::new()),
        })
    }

    fn next_id(&self) -> CommentId {
        CommentId(self.known + 1)
    }

    /// Returns the comment at the cursor, or the first below the highlighted line.
    pub(super) fn comment_below_cursor(&self) -> Option<CommentId> {
        let rows = self.rows.iter().skip(self.cursor.at()).take(2);
        rows.into_iter().find_map(|row| match row {
            ReviewRow::Comment { comment, .. } => Some(*comment),
            _ => None,
        })
    }

    /// Returns what a comment says, or is begun to say.
    pub(super) fn words(&self, comment: CommentId) -> &str {
        let comment = self.comment(comment);
        comment.map_or("", |it| match it.words.is_empty() {
            true => it.continued(),
            false => &it.words,
        })
    }

    /// Returns a comment to be changed; a new one at this place if it is not there.
    fn comment_mut(&mut self, id: CommentId, place: CommentPlace) -> Option<&mut Comment> {
        if self.comment(id).is_none() {
            self.known = self.known.max(id.0);
            self.comments.push(Comment::new(id, place));
        }
        self.comments.iter_mut().find(|it| it.id == id)
    }

    /// Writes a comment. What was begun of it is finished.
    pub(super) fn write(&mut self, id: CommentId, place: CommentPlace, words: &str) {
        if let Some(comment) = self.comment_mut(id, place) {
            comment.set_words(words);
            comment.begun = None;
        }
        self.make_rows();
    }

    /// Replaces the words of the comment at the cursor, or writes a new one on the highlighted line.
    /// What was begun stays. Returns false if nothing can be commented on.
    pub(super) fn write_at_cursor(&mut self, words: &str) -> bool {
        let row = self.row();
        let Some((row, place)) = row.and_then(|row| Some((row, self.place(row)?))) else {
            return false;
        };
        let id = match row {
            ReviewRow::Comment { comment, .. } => comment,
            _ => self.next_id(),
        };
        if let Some(comment) = self.comment_mut(id, place) {
            comment.set_words(words);
        }
        self.make_rows();
        true
    }

    /// Keeps what is begun of a comment.
    pub(super) fn keep_begun(&mut self, id: CommentId, place: CommentPlace, begun: String) {
        if let Some(comment) = self.comment_mut(id, place) {
            let is_new = !begun.trim().is_empty() && begun != comment.words;
            comment.begun = is_new.then_some(begun);
        }
        self.drop_empty();
    }

    /// Deletes a comment. The cursor stays where it stood.
    pub(super) fn delete(&mut self, comment: CommentId) {
        self.comments.retain(|it| it.id != comment);
        self.make_rows();
    }

    fn drop_empty(&mut self) {
        self.comments.retain(|it| !it.is_empty());
        self.make_rows();
    }

    /// The message has reached the agent: deletes what it says.
    pub(super) fn drop_sent(&mut self) {
        for comment in &mut self.comments {
            if comment.is_in_message {
                comment.set_words("");
            }
        }
        self.drop_empty();
    }

    /// Returns what is written as a message to the agent; none if nothing is.
    pub(super) fn message(&mut self) -> Option<String> {
        let order = self.rows.iter().filter_map(|row| match row {
            ReviewRow::Comment { comment, part: 0 } => self.comment(*comment),
            _ => None,
        });
        let comments: Vec<&Comment> = order.filter(|it| !it.words.is_empty()).collect();
        let message = (!comments.is_empty()).then(|| message(&self.shown, &comments));
        for comment in &mut self.comments {
            comment.is_in_message = !comment.words.is_empty();
        }
        message
    }

    fn make_rows(&mut self) {
        self.rows = rows(&self.shown, &self.comments, self.width);
        self.cursor.refresh(&self.rows);
    }

    /// Returns a row of a comment as it is shown.
    pub(super) fn comment_part(&self, comment: CommentId, part: usize) -> Option<String> {
        let comment = self.comment(comment)?;
        comment_parts(comment, self.width).into_iter().nth(part)
    }
}
