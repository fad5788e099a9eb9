//! Copies the uncommitted work of a parent: writes everything in its checkout as a tree, then
//! makes the worktree look like that tree, with nothing committed or staged.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::git::{Git, GitError, GitHold};

use super::parent::{Parent, uncommitted};
use super::status::{ChangeKind, StatusEntry};

/// What was copied, and what could not be.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The tree; none if there is nothing to carry.
    pub(super) tree: Option<String>,
    pub(super) carried: Option<String>,
    pub(super) missing: Option<String>,
}

/// A temporary index, so that the parent's own index is not changed. Removed on drop.
pub(super) struct DraftIndex(pub(super) PathBuf);

impl DraftIndex {
    /// Returns a copy of `index`, in a directory that goes with the worktree.
    pub(super) fn copy(index: &Path, directory: &Path) -> std::io::Result<Self> {
        let draft = Self(directory.join(format!("posse-index.{}", Uuid::now_v7())));
        match fs::copy(index, &draft.0) {
            // A checkout without an index has no tracked files.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied?),
        }
        Ok(draft)
    }
}

impl Drop for DraftIndex {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes a tree of everything in the parent's checkout. The parent's index is copied to
/// `drafts`.
pub(super) fn gather(parent: &Parent, drafts: &Path) -> Result<Carried, GitError> {
    let status = parent.each_change()?;
    let (goes, stays): (Vec<&StatusEntry>, Vec<&StatusEntry>) =
        status.entries.iter().partition(|entry| can_go(entry));
    let missing = uncommitted(&stays);
    if goes.is_empty() {
        return Ok(Carried {
            missing,
            ..Carried::default()
        });
    }
    let index = Git::look(&parent.top).words([
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "index",
    ]);
    let draft = DraftIndex::copy(Path::new(&index.line()?), drafts)?;
    let mut paths = Vec::new();
    for entry in &goes {
        paths.extend_from_slice(entry.path.as_os_str().as_bytes());
        paths.push(0);
    }
    // `--replace`, since a file may have become a directory, or the other way round.
    let add = [
        "update-index",
        "--add",
        "--remove",
        "--replace",
        "-z",
        "--stdin",
    ];
    Git::change_files(&parent.top, &parent.hold)
        .index(&draft.0)
        .words(add)
        .input(paths)
        .run()?;
    // It compares files that were changed in the same moment as the index.
    let tree = Git::change_files(&parent.top, &parent.hold)
        .index(&draft.0)
        .word("write-tree")
        .line()?;
    Ok(Carried {
        tree: Some(tree),
        carried: uncommitted(&goes),
        missing,
    })
}

/// Returns true if this entry can be copied. Nested repositories cannot, since their commits are
/// not in this one.
fn can_go(entry: &StatusEntry) -> bool {
    match entry.kind {
        ChangeKind::Known { submodule, .. } => !submodule,
        // Files are listed one by one; a directory that is listed has a repository in it.
        ChangeKind::New => !entry.is_directory(),
        ChangeKind::Ignored => false,
    }
}

/// Makes a worktree that is at its base look like `tree`.
pub(super) fn unpack(worktree: &Path, tree: &str, hold: &GitHold) -> Result<(), GitError> {
    Git::change_files(worktree, hold)
        .words(["read-tree", "-m", "-u", "HEAD", tree])
        .run()?;
    // The files stay; the index is that of HEAD again, so that nothing is staged.
    Git::change_files(worktree, hold)
        .words(["reset", "-q", "--mixed"])
        .run()?;
    Ok(())
}
