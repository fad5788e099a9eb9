//! What somebody does to a worktree that they name.

use crate::git::Git;

use super::reference::tip;
use super::worktree_root::WorktreeRoot;
use super::{Found, GitWorktrees, Swept, WorktreeError, branch_of};

impl GitWorktrees {
    /// Removes it if nothing is lost with it, as the sweep does; else it is told as it is now.
    /// Blocks.
    pub fn clean(&self, found: &Found) -> Result<Swept, WorktreeError> {
        let root = self.root_of(found)?;
        let _lock = root.lock()?;
        if self.lives(&root, found.agent) {
            return Ok(Swept {
                found: self.found(&root, found.agent),
                removed: false,
            });
        }
        // What somebody else has removed meanwhile is gone as well.
        let gone = || Swept {
            found: found.clone(),
            removed: true,
        };
        Ok(self.sweep_one(&root, found.agent).unwrap_or_else(gone))
    }

    /// Returns the commits that its branch and its checkout are at, unless it was made from them:
    /// by these the work can be got back after [`discard`](Self::discard), as long as git has it.
    /// Blocks.
    pub fn commits(&self, found: &Found) -> Vec<String> {
        let Ok(root) = self.root_of(found) else {
            return Vec::new();
        };
        let directory = root.registration(found.agent).directory;
        let checkout = Git::look(&root.directory).directory(&directory);
        let head = checkout
            .words(["rev-parse", "--verify", "--quiet", "HEAD"])
            .line()
            .ok();
        let branch = tip(&root, &format!("refs/heads/{}", branch_of(found.agent)))
            .ok()
            .flatten();
        let mut commits: Vec<String> = branch.into_iter().chain(head).collect();
        commits.retain(|commit| Some(commit) != found.base.as_ref());
        commits.dedup();
        commits
    }

    fn root_of(&self, found: &Found) -> Result<WorktreeRoot, WorktreeError> {
        let directory = found.path.parent().ok_or(WorktreeError::NoDirectory)?;
        Ok(WorktreeRoot::at(directory, &self.hold)?)
    }
}
