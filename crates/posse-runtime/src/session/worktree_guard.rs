//! Guards a worktree from when it is made until its agent exists.

use std::sync::Arc;

use posse_permission::Rights;
use posse_port::worktree::{Made, Worktree};
use posse_protocol::AgentId;

use crate::agent::hooked_worktree::WorktreeHooks;
use crate::live::session::Session;
use crate::session::factory::Factory;

/// A worktree that no agent has yet. Dropped, it is released unless an agent has taken it.
pub(crate) struct WorktreeGuard {
    /// Releases the worktree.
    pub(crate) factory: Arc<Factory>,
    /// The worktree; none if the agent needs none, or has taken it.
    pub(crate) made: Option<Made>,
    /// For which agent of which session, with whose rights.
    pub(crate) agent: AgentId,
    pub(crate) session: Arc<Session>,
    pub(crate) rights: Rights,
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
        let ports = self.factory.ports.clone();
        let (session, rights, agent) = (Arc::clone(&self.session), self.rights.clone(), self.agent);
        let cancel = self.factory.supervisor.branch();
        // Releasing runs git or hooks, and `drop` cannot wait.
        self.factory.supervisor.start_errand(async move {
            if !made.worktree.by_hook {
                ports.worktrees.release(&made.worktree).await;
                return;
            }
            let hooks = WorktreeHooks {
                ports: &ports,
                session: &session,
                rights: &rights,
                agent,
            };
            hooks.remove(&made.worktree, cancel).await;
        });
    }
}
