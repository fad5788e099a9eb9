//! Finds the repository of a directory without git, which may not be installed.

use std::path::{Path, PathBuf};

use posse_tools::Found;

/// Returns a worktree's repository as people name it: the directory with its `.git`, or a bare
/// repository itself.
pub(crate) fn of(found: &Found) -> Option<PathBuf> {
    let Some(shared) = shared(found) else {
        return found.origin.clone();
    };
    match shared.file_name() {
        Some(name) if name == ".git" => shared.parent().map(Path::to_owned),
        _ => Some(shared),
    }
}

/// Returns the git directory that all checkouts of a worktree's repository share. Its own `.git`
/// names it; if that is gone, the checkout it was created from does.
pub(crate) fn shared(found: &Found) -> Option<PathBuf> {
    named_in(&found.path).or_else(|| around(found.origin.as_deref()?))
}

/// Returns the shared git directory of the repository that contains a directory.
pub(crate) fn around(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find_map(named_in)
}

/// Returns the shared git directory of a checkout's top directory.
fn named_in(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return git.canonicalize().ok();
    }
    let text = std::fs::read_to_string(git).ok()?;
    let own = top.join(text.strip_prefix("gitdir: ")?.trim_end());
    let shared = match std::fs::read_to_string(own.join("commondir")) {
        Ok(shared) => own.join(shared.trim_end()),
        // A submodule's git directory is not shared.
        Err(_) => own,
    };
    shared.canonicalize().ok()
}
