//! The text of a file that a person or an administrator writes.

use std::io::{self, ErrorKind};
use std::path::Path;

/// Returns the text of a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    let text = match std::fs::metadata(path) {
        // Reading a pipe would block.
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a file")),
        Ok(_) => std::fs::read_to_string(path),
        Err(error) => Err(error),
    };
    match text {
        // Some editors write a byte order mark.
        Ok(text) => Ok(Some(match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        })),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
