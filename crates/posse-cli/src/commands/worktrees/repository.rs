//! Which repository a directory belongs to, without asking git, which may not be there.

use std::path::{Path, PathBuf};

use posse_tools::Found;

/// Returns the repository of a worktree as people name it: the directory that has its `.git`; a
/// bare one itself.
pub(super) fn of(found: &Found) -> Option<PathBuf> {
    let Some(shared) = shared(found) else {
        return found.origin.clone();
    };
    match shared.file_name() {
        Some(name) if name == ".git" => shared.parent().map(Path::to_owned),
        _ => Some(shared),
    }
}

/// Returns what all checkouts of a worktree's repository share. Its own `.git` says which; if that
/// is gone, the checkout that it was made from does.
pub(super) fn shared(found: &Found) -> Option<PathBuf> {
    named_in(&found.path).or_else(|| around(found.origin.as_deref()?))
}

/// Returns the same of the repository that a directory lies in.
pub(super) fn around(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find_map(named_in)
}

/// Returns the same of a checkout's top directory.
fn named_in(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return git.canonicalize().ok();
    }
    let text = std::fs::read_to_string(git).ok()?;
    let own = top.join(text.strip_prefix("gitdir: ")?.trim_end());
    let shared = match std::fs::read_to_string(own.join("commondir")) {
        Ok(shared) => own.join(shared.trim_end()),
        // A submodule's: nobody shares it.
        Err(_) => own,
    };
    shared.canonicalize().ok()
}
