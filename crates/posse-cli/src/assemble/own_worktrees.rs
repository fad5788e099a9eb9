//! The worktrees of this posse.

use posse_tools::GitWorktrees;

use super::{directories, sandbox};

/// Returns the worktrees in posse's home. Programs that repositories have git run are held.
pub(crate) fn own_worktrees() -> anyhow::Result<GitWorktrees> {
    let worktrees = GitWorktrees::new(directories::worktrees()?);
    Ok(worktrees.held_by(sandbox::of_git()?))
}
