//! Variables that hooks have set for the commands of a session.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use posse_port::tool::VARIABLES;

/// Returns a command that first reads the files in these directories, in the order of their names; the
/// command itself if there are none.
pub(super) fn with_variables<'a>(command: &'a str, directories: &[PathBuf]) -> Cow<'a, str> {
    let files = directories.iter().flat_map(|directory| {
        let listed = std::fs::read_dir(directory).into_iter().flatten();
        let mut files: Vec<_> = listed.flatten().map(|entry| entry.path()).collect();
        files.sort();
        files.into_iter().map(|hook| hook.join(VARIABLES))
    });
    let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    let lines: String = files.map(|file| format!(". {}\n", quoted(&file))).collect();
    match lines.is_empty() {
        true => command.into(),
        false => (lines + command).into(),
    }
}
