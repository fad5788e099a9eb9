//! A team as files: the layout that other programs use, with posse's own data under `posse`.
//!
//! Pure: texts in, texts out. The same archive always makes the same files, byte for byte.

mod check;
mod files;
mod numbers;
mod parse;

use std::collections::BTreeMap;

use posse_protocol::{Mail, Name};

pub(super) use self::check::check;
pub(super) use self::files::{PreviousExport, files, previous, unfinished};
pub(super) use self::parse::{ParsedArchive, parse};

/// The file that describes the team.
pub(super) const CONFIG: &str = "config.json";

/// Number of errors that are listed.
pub(super) const NAMED: usize = 20;

/// Texts by their path inside the directory, such as `tasks/1.json`.
pub(super) type ArchiveFiles = BTreeMap<String, String>;

/// The mail of members that have left, by their names.
pub(super) type FormerInboxes = BTreeMap<Name, Vec<Mail>>;

/// An error in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArchiveError {
    pub(super) file: String,
    pub(super) why: String,
}

impl ArchiveError {
    fn new(file: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            why: why.into(),
        }
    }
}

#[cfg(test)]
mod tests;
