//! The worktrees of this posse.

pub(crate) use posse_tools::{Found as FoundWorktree, FoundBranch, GitWorktrees};

use super::{directories, sandbox};

/// Returns the worktrees in posse's home. Programs that repositories have git run are held.
pub(crate) fn own_worktrees() -> anyhow::Result<GitWorktrees> {
    let worktrees = GitWorktrees::new(directories::worktrees()?);
    Ok(worktrees.held_by(sandbox::of_git()?))
}
