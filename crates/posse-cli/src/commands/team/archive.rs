//! A team as files: the layout that other programs know, with what only posse knows under `posse`.
//!
//! Pure: texts in, texts out. The same archive is always the same files, byte for byte.

mod check;
mod files;
mod numbers;
mod parse;

use std::collections::BTreeMap;

pub(super) use self::check::check;
pub(super) use self::files::{Previous, files, previous, unfinished};
pub(super) use self::parse::{Found, parse};

/// Where the team is described.
pub(super) const CONFIG: &str = "config.json";

/// How many wrong files are named.
pub(super) const NAMED: usize = 20;

/// Texts by their place beneath the directory: `tasks/1.json`.
pub(super) type Files = BTreeMap<String, String>;

/// What is wrong, and in which file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) file: String,
    pub(super) why: String,
}

impl Wrong {
    fn new(file: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            why: why.into(),
        }
    }
}

#[cfg(test)]
mod tests;
