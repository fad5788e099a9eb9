//! A host's history: an append-only file of lines.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use posse_testkit::fleet::Record;

use crate::Failed;

pub(crate) struct History(File);

impl History {
    pub(crate) fn new(path: &Path) -> Result<Self, Failed> {
        Ok(Self(
            File::options().create_new(true).append(true).open(path)?,
        ))
    }

    /// Adds a line in one call, so that it is written whole or not at all.
    pub(crate) fn write(&self, record: &Record) -> Result<(), Failed> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        Ok((&self.0).write_all(&line)?)
    }
}
