//! Which ignored files are nobody's work: what a tool says that it can make again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// What tools put into a directory of things that can be made again, and how it begins.
const TAG: &str = "CACHEDIR.TAG";
const SIGNATURE: &[u8; 43] = b"Signature: 8a477f597d28d172789f06886806bc55";
const DISPOSABLE: &[&str] = &["node_modules", "__pycache__"];

/// Returns true if nothing is lost with `path`, a file or directory beneath `top` that git ignores.
pub(super) fn is_disposable(top: &Path, path: &Path) -> bool {
    let above = path
        .ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty());
    if above
        .into_iter()
        .any(|above| can_be_made_again(&top.join(above)))
    {
        return true;
    }
    let place = top.join(path);
    match place.symlink_metadata() {
        Ok(there) if there.is_dir() => can_be_made_again(&place) || !holds_files(&place),
        Ok(_) => false,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn can_be_made_again(directory: &Path) -> bool {
    let named = directory
        .file_name()
        .is_some_and(|name| DISPOSABLE.iter().any(|it| name == OsStr::new(it)));
    // A link may have the name; what it leads to is not removed with it.
    directory
        .symlink_metadata()
        .is_ok_and(|there| there.is_dir())
        && (named || is_tagged(directory))
}

fn is_tagged(directory: &Path) -> bool {
    let mut start = [0; SIGNATURE.len()];
    let tag = directory.join(TAG);
    tag.symlink_metadata().is_ok_and(|there| there.is_file())
        && File::open(tag)
            .and_then(|mut file| file.read_exact(&mut start))
            .is_ok()
        && start == *SIGNATURE
}

/// Returns true if there is anything but directories in it, apart from what can be made again. What
/// cannot be read counts as a file.
pub(in crate::worktree) fn holds_files(directory: &Path) -> bool {
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return true,
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?.is_dir(), entry.path()))) {
                Ok((true, path)) if can_be_made_again(&path) => {}
                Ok((true, path)) => open.push(path),
                _ => return true,
            }
        }
    }
    false
}
