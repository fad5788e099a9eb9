//! What a person says to a line of a change, and the message that the agent gets of it.

use posse_protocol::{DiffLine, LineChange};

use crate::board::facts::{BoardReview, ReviewFile, short_commit};
use crate::text::numbered;

/// Number of characters of a line that are quoted.
const QUOTED: usize = 200;

/// What a comment is known by while others come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::board) struct CommentId(pub(super) u64);

/// A comment of a person. Something is written or begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::board) struct Comment {
    pub(in crate::board) id: CommentId,
    pub(in crate::board) place: CommentPlace,
    /// What is sent; empty if nothing is written.
    pub(in crate::board) words: String,
    /// What the person wrote last and did not finish.
    pub(in crate::board) begun: Option<String>,
    /// True if the last message to the agent has these words.
    pub(super) is_in_message: bool,
}

impl Comment {
    /// Returns a comment in which nothing is written.
    pub(super) fn new(id: CommentId, place: CommentPlace) -> Self {
        Self {
            id,
            place,
            words: String::new(),
            begun: None,
            is_in_message: false,
        }
    }

    /// Returns true if nothing is written or begun.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.begun.is_none()
    }

    /// Returns what the person continues to write.
    pub(super) fn continued(&self) -> &str {
        self.begun.as_deref().unwrap_or(&self.words)
    }

    /// Replaces the words.
    pub(super) fn set_words(&mut self, words: &str) {
        self.words = words.to_owned();
        self.is_in_message = false;
    }
}

/// What a comment is about: a line, or a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::board) struct CommentPlace {
    pub(super) path: String,
    line: Option<QuotedLine>,
}

/// A line of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QuotedLine {
    number: u64,
    change: LineChange,
    text: String,
}

impl QuotedLine {
    fn is(&self, line: &DiffLine) -> bool {
        self.change == line.change && self.text == line.text
    }
}

impl CommentPlace {
    /// Returns the place of a whole file.
    pub(super) fn of_file(file: &ReviewFile) -> Self {
        Self {
            path: file.change.path.clone(),
            line: None,
        }
    }

    /// Returns the place of a line.
    pub(super) fn of_line(file: &ReviewFile, number: u64, line: &DiffLine) -> Self {
        Self {
            path: file.change.path.clone(),
            line: Some(QuotedLine {
                number,
                change: line.change,
                text: line.text.clone(),
            }),
        }
    }

    /// Returns true if it is this line of its file.
    pub(super) fn is_line(&self, number: u64, line: &DiffLine) -> bool {
        let own = self.line.as_ref();
        own.is_some_and(|own| own.number == number && own.is(line))
    }

    /// Returns true if it is a line that its file has.
    pub(super) fn has_line(&self, file: &ReviewFile) -> bool {
        let mut lines = file.change.hunks.iter().flat_map(numbered);
        lines.any(|(number, line)| self.is_line(number, line))
    }

    /// The files have changed: the same line may have another number.
    pub(super) fn follow(&mut self, files: &[ReviewFile]) {
        let file = files.iter().find(|file| file.change.path == self.path);
        let (Some(file), Some(own)) = (file, &mut self.line) else {
            return;
        };
        let lines = file.change.hunks.iter().flat_map(numbered);
        let same = lines.filter(|(_, line)| own.is(line));
        let nearest = same.min_by_key(|(number, _)| number.abs_diff(own.number));
        if let Some((number, _)) = nearest {
            own.number = number;
        }
    }

    /// Returns where it is, for people and models: `src/lexer.rs:41`.
    pub(in crate::board) fn label(&self) -> String {
        match &self.line {
            None => self.path.clone(),
            Some(line) => {
                let removed = match line.change {
                    LineChange::Removed => " (removed)",
                    LineChange::Kept | LineChange::Added => "",
                };
                format!("{}:{}{removed}", self.path, line.number)
            }
        }
    }

    fn quote(&self) -> String {
        let Some(line) = &self.line else {
            return String::new();
        };
        let mark = match line.change {
            LineChange::Kept => ' ',
            LineChange::Removed => '-',
            LineChange::Added => '+',
        };
        let text: String = line.text.chars().take(QUOTED).collect();
        format!("> {mark}{text}\n")
    }
}

/// Returns comments as a message to the agent.
pub(super) fn message(review: &BoardReview, comments: &[&Comment]) -> String {
    let base = short_commit(&review.base);
    let mut text = format!(
        "I have reviewed the changes in your worktree (branch {}, since {base}).\n",
        review.branch
    );
    for comment in comments {
        let (label, quote) = (comment.place.label(), comment.place.quote());
        text.push_str(&format!("\n{label}\n{quote}{}\n", comment.words));
    }
    text
}
