//! What the server has done, in a file: tests count there what was done, and how often.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Value, json};

/// The file, if there is one.
pub(crate) struct Log {
    file: Option<File>,
}

impl Log {
    /// Opens a file to append to it.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let file = path.map(open).transpose()?;
        Ok(Self { file })
    }

    /// Appends a line with the process's number. It is on the disk when this returns.
    pub(crate) fn write(&self, event: &str, more: Value) -> io::Result<()> {
        let Some(mut file) = self.file.as_ref() else {
            return Ok(());
        };
        let mut line = json!({ "event": event, "pid": std::process::id() });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        // One write: lines of several processes do not mix.
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()
    }
}
