//! A team as files: the layout that other programs know, with what only posse knows under `posse`.
//!
//! Pure: texts in, texts out. The same archive is always the same files, byte for byte.

mod check;
mod files;
mod numbers;
mod parse;

use std::collections::BTreeMap;

pub(super) use self::check::check;
pub(super) use self::files::{PreviousExport, files, previous, unfinished};
pub(super) use self::parse::{ParsedArchive, parse};

/// Where the team is described.
pub(super) const CONFIG: &str = "config.json";

/// How many wrong files are named.
pub(super) const NAMED: usize = 20;

/// Texts by their place beneath the directory: `tasks/1.json`.
pub(super) type ArchiveFiles = BTreeMap<String, String>;

/// What is wrong, and in which file.
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
