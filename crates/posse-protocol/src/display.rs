//! What a person is shown beside a call: the change that it would make.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something to look at before a call is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Display {
    /// The change of a file.
    Diff(FileDiff),
    /// Words, where there is no change to show.
    Text {
        /// The words.
        text: String,
    },
}

/// The change of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The file, relative to the working directory if it is inside.
    pub path: String,
    /// Whether the file does not exist yet.
    pub is_new: bool,
    /// Lines that come, in the whole change.
    pub added: u64,
    /// Lines that go, in the whole change.
    pub removed: u64,
    /// The places that change.
    pub hunks: Vec<Hunk>,
    /// Number of lines that are left out because the change is too long.
    pub left_out: u64,
}

/// A place of a file that changes, with a few lines around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// The number of its first line in the old file; 1 is the first of the file.
    pub old_start: u64,
    /// The number of its first line in the new file.
    pub new_start: u64,
    /// Its lines.
    pub lines: Vec<DiffLine>,
}

/// A line of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffLine {
    /// What happens to it.
    pub change: LineChange,
    /// The line without its end.
    pub text: String,
    /// Whether it is the last of its file and has no end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_open: bool,
}

/// What happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineChange {
    /// It stays.
    Kept,
    /// It goes.
    Removed,
    /// It comes.
    Added,
}

impl Display {
    /// Returns it with at most `most` bytes of text; a change says how many lines are left out.
    pub fn clipped(self, most: usize) -> Self {
        match self {
            Self::Diff(diff) => Self::Diff(diff.clipped(most)),
            Self::Text { text } if text.len() <= most => Self::Text { text },
            Self::Text { text } => Self::Text {
                text: format!("{}…", &text[..text.floor_char_boundary(most)]),
            },
        }
    }
}

impl FileDiff {
    /// Leaves out the lines after the first `most` bytes.
    fn clipped(mut self, most: usize) -> Self {
        let mut room = Some(most);
        let mut left_out = 0;
        for hunk in &mut self.hunks {
            let mut fits = |line: &DiffLine| {
                room = room.and_then(|room| room.checked_sub(line.text.len() + 1));
                room.is_some()
            };
            let kept = hunk
                .lines
                .iter()
                .map_while(|line| fits(line).then_some(()))
                .count();
            left_out += (hunk.lines.len() - kept) as u64;
            hunk.lines.truncate(kept);
        }
        self.hunks.retain(|hunk| !hunk.lines.is_empty());
        self.left_out += left_out;
        self
    }
}

impl LineChange {
    /// Returns the mark before the line in a unified diff.
    fn mark(self) -> char {
        match self {
            Self::Kept => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

/// As a unified diff. Control characters are as they are in the file.
impl fmt::Display for Display {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diff(diff) => diff.fmt(f),
            Self::Text { text } => writeln!(f, "{text}"),
        }
    }
}

impl fmt::Display for FileDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let old = if self.is_new { "/dev/null" } else { &self.path };
        writeln!(f, "--- {old}\n+++ {}", self.path)?;
        self.hunks.iter().try_for_each(|hunk| hunk.fmt(f))?;
        match self.left_out {
            0 => Ok(()),
            1 => writeln!(f, "… 1 more line is not shown"),
            count => writeln!(f, "… {count} more lines are not shown"),
        }
    }
}

impl fmt::Display for Hunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |change: LineChange| {
            let lines = self.lines.iter();
            lines.filter(|line| line.change != change).count()
        };
        // A side without lines is named by the line before it.
        let side = |start: u64, count: usize| match count {
            0 => format!("{},0", start.saturating_sub(1)),
            1 => format!("{start}"),
            count => format!("{start},{count}"),
        };
        let old = side(self.old_start, count(LineChange::Added));
        let new = side(self.new_start, count(LineChange::Removed));
        writeln!(f, "@@ -{old} +{new} @@")?;
        for line in &self.lines {
            writeln!(f, "{}{}", line.change.mark(), line.text)?;
            if line.is_open {
                writeln!(f, "\\ No newline at end of file")?;
            }
        }
        Ok(())
    }
}
