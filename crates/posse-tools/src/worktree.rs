//! Git worktrees for agents: made, kept or removed, found again.

use std::path::PathBuf;

use posse_runtime::port::BoxFuture;
use posse_runtime::port::worktree::{Made, Wanted, Worktree, Worktrees};

/// Worktrees in a directory of posse's own.
#[derive(Clone, Debug)]
pub struct GitWorktrees {
    home: PathBuf,
}

impl GitWorktrees {
    /// Worktrees beneath `home`, which is made when the first is wanted.
    pub fn new(home: PathBuf) -> Self {
        Self { home }
    }
}

impl Worktrees for GitWorktrees {
    fn make(&self, wanted: Wanted) -> BoxFuture<'static, Result<Made, String>> {
        let told = format!("{} {}", wanted.agent, self.home.display());
        Box::pin(std::future::ready(Err(told)))
    }

    fn changes(&self, worktree: &Worktree) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::ready(Some(worktree.branch.clone())))
    }

    fn release(&self, worktree: &Worktree) -> BoxFuture<'static, Option<String>> {
        self.changes(worktree)
    }

    fn reclaim(&self, worktree: &Worktree) -> BoxFuture<'static, Result<bool, String>> {
        Box::pin(std::future::ready(Err(worktree.branch.clone())))
    }
}
