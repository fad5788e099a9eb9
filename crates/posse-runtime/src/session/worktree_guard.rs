//! Guards a worktree from when it is made until its agent exists.

use std::sync::Arc;

use posse_port::worktree::{Made, Worktree};

use crate::session::factory::Factory;

/// A worktree that no agent has yet. Dropped, it is released unless an agent has taken it.
pub(crate) struct WorktreeGuard {
    /// Releases the worktree.
    pub(crate) factory: Arc<Factory>,
    /// The worktree; none if the agent needs none, or has taken it.
    pub(crate) made: Option<Made>,
}

impl WorktreeGuard {
    /// Leaves the worktree to an agent of another process.
    pub(crate) fn keep(mut self) {
        self.made = None;
    }

    /// Hands the worktree to an agent of this process.
    pub(crate) fn take(mut self) -> Option<Worktree> {
        self.made.take().map(|made| made.worktree)
    }
}

impl Drop for WorktreeGuard {
    fn drop(&mut self) {
        let Some(made) = self.made.take() else { return };
        let worktrees = Arc::clone(&self.factory.ports.worktrees);
        // Releasing runs git, and `drop` cannot wait.
        self.factory.supervisor.start_errand(async move {
            worktrees.release(&made.worktree).await;
        });
    }
}
