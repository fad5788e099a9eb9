//! A small TOML file of a person: its text, and where things are in it.

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::config::text_file;

/// A file that was read.
pub(super) struct TomlFile {
    path: PathBuf,
    text: String,
}

impl TomlFile {
    /// Reads a file; none if it does not exist, or cannot be read, which is told.
    pub(super) fn read(path: &Path, warnings: &mut Vec<String>) -> Option<Self> {
        let text = match text_file::read(path) {
            Ok(text) => text?,
            Err(error) => {
                warnings.push(format!("{}: {error}", path.display()));
                return None;
            }
        };
        let path = path.to_owned();
        Some(Self { path, text })
    }

    /// Returns its content, and says what of it cannot be read.
    pub(super) fn table(&self, warnings: &mut Vec<String>) -> DeTable<'_> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            warnings.push(self.remark(at, error.message()));
        }
        table.into_inner()
    }

    /// Returns a remark about what begins at a byte, with the file and the line.
    pub(super) fn remark(&self, at: usize, what: &str) -> String {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        format!("{}:{line}: {what}", self.path.display())
    }
}
