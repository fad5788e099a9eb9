//! Variables that hooks have set for the commands of a session.

use std::borrow::Cow;
use std::path::Path;

/// Returns a command that first reads the files in this directory, in the order of their names; the
/// command itself if there are none.
pub(super) fn with_variables<'a>(command: &'a str, directory: &Path) -> Cow<'a, str> {
    let listed = std::fs::read_dir(directory).into_iter().flatten();
    let mut files: Vec<_> = listed.flatten().map(|entry| entry.path()).collect();
    if files.is_empty() {
        return command.into();
    }
    files.sort();
    let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    let lines = files.iter().map(|file| format!(". {}\n", quoted(file)));
    let mut whole: String = lines.collect();
    whole.push_str(command);
    whole.into()
}
