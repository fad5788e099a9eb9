//! The references of a repository.

use crate::git::{Git, GitError};

use super::worktree_root::WorktreeRoot;

/// Returns the commit that a reference leads to.
pub(super) fn tip(root: &WorktreeRoot, reference: &str) -> Result<Option<String>, GitError> {
    let git = Git::look(&root.directory).directory(&root.common);
    // Where there is none, this is an empty list, not an error.
    let told = git
        .words(["for-each-ref", "--format=%(objectname)", reference])
        .line()?;
    Ok((!told.is_empty()).then_some(told))
}
