//! Uncommitted work of a parent that goes along: as a tree of everything that is in its checkout,
//! which the worktree is made to look like, with nothing of it committed or staged.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::git::{Git, GitError};

use super::parent::{Parent, uncommitted};
use super::status::{ChangeKind, StatusEntry};

/// What was carried, and what could not be.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The tree; none if there is nothing to carry.
    pub(super) tree: Option<String>,
    pub(super) carried: Option<String>,
    pub(super) missing: Option<String>,
}

/// An index that is used for a moment.
pub(super) struct DraftIndex(pub(super) PathBuf);

impl DraftIndex {
    /// Returns a copy of `index`, in a directory that goes with the worktree.
    pub(super) fn copy(index: &Path, directory: &Path) -> std::io::Result<Self> {
        let draft = Self(directory.join(format!("posse-index.{}", Uuid::now_v7())));
        match fs::copy(index, &draft.0) {
            // A checkout without an index has nothing in it.
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

/// Makes a tree of all that is in the parent's checkout. `drafts` is where its index may be copied
/// to.
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
    Git::change(&parent.top)
        .index(&draft.0)
        .words(add)
        .input(paths)
        .run()?;
    let tree = Git::change(&parent.top)
        .index(&draft.0)
        .word("write-tree")
        .line()?;
    Ok(Carried {
        tree: Some(tree),
        carried: uncommitted(&goes),
        missing,
    })
}

/// Returns true if it can be carried: repositories in the repository stay, since their commits are
/// not here.
fn can_go(entry: &StatusEntry) -> bool {
    match entry.kind {
        ChangeKind::Known { submodule, .. } => !submodule,
        // Each file is told by itself; what is left of directories has a repository in it.
        ChangeKind::New => !entry.is_directory(),
        ChangeKind::Ignored => false,
    }
}

/// Makes a worktree that is at its base look like `tree`.
pub(super) fn unpack(worktree: &Path, tree: &str) -> Result<(), GitError> {
    Git::change(worktree)
        .words(["read-tree", "-m", "-u", "HEAD", tree])
        .run()?;
    // The files stay; the index is that of HEAD again, so that nothing is staged.
    Git::change(worktree)
        .words(["reset", "-q", "--mixed"])
        .run()?;
    Ok(())
}
