//! A worktree between its making and its agent's birth.

use std::sync::Arc;

use posse_port::worktree::{Made, Worktree};

use crate::session::factory::Factory;

/// A worktree that no agent has yet: given back unless one takes it.
pub(crate) struct WorktreeGuard {
    pub(crate) factory: Arc<Factory>,
    pub(crate) made: Option<Made>,
}

impl WorktreeGuard {
    /// An agent of another process has it from now on.
    pub(crate) fn keep(mut self) {
        self.made = None;
    }

    /// An agent has it from now on.
    pub(crate) fn take(mut self) -> Option<Worktree> {
        self.made.take().map(|made| made.worktree)
    }
}

impl Drop for WorktreeGuard {
    fn drop(&mut self) {
        let Some(made) = self.made.take() else { return };
        let worktrees = Arc::clone(&self.factory.ports.worktrees);
        self.factory.supervisor.start_errand(async move {
            worktrees.release(&made.worktree).await;
        });
    }
}
