//! The worktree port: git checkouts that belong to one agent.

use std::path::PathBuf;

use posse_protocol::AgentId;
use serde::{Deserialize, Serialize};

use super::BoxFuture;

/// Makes and removes worktrees. Uncommitted work is never destroyed.
///
/// Without methods of its own, an adapter makes no worktree and removes none.
pub trait Worktrees: Send + Sync {
    /// Makes a worktree, locked for its agent. On failure nothing is left of it; the error text is
    /// for a model.
    fn make(&self, _wanted: Wanted) -> BoxFuture<'static, Result<Made, String>> {
        ready(Err(UNAVAILABLE.to_owned()))
    }

    /// Describes in one line what removing the worktree would lose; `None` if nothing. Anything
    /// that cannot be determined counts as a loss.
    fn changes(&self, _worktree: &Worktree) -> BoxFuture<'static, Option<String>> {
        ready(Some(UNAVAILABLE.to_owned()))
    }

    /// Removes the worktree and its branch after its agent has ended, if nothing would be lost;
    /// otherwise unlocks and keeps it. Returns what is kept, as in [`changes`](Self::changes).
    fn release(&self, _worktree: &Worktree) -> BoxFuture<'static, Option<String>> {
        ready(Some(UNAVAILABLE.to_owned()))
    }

    /// Locks the worktree again for an agent that continues; makes it again if it is gone. Returns
    /// true if it had to be made; the error says why it is unavailable.
    fn reclaim(&self, _worktree: &Worktree) -> BoxFuture<'static, Result<bool, String>> {
        ready(Err(UNAVAILABLE.to_owned()))
    }
}

/// Makes no worktrees: an agent that is to have one does not start.
#[derive(Clone, Copy, Debug)]
pub struct NoWorktrees;

impl Worktrees for NoWorktrees {}

/// What an agent is told that asks for a worktree where there are none.
const UNAVAILABLE: &str = "worktrees are not available here; work in the current directory";

fn ready<T: Send + 'static>(answer: T) -> BoxFuture<'static, T> {
    Box::pin(std::future::ready(answer))
}

/// A request for a new worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The owner; branch and directory are named after it.
    pub agent: AgentId,
    /// The parent's working directory.
    pub from: PathBuf,
    /// The commit to start from.
    pub base: Base,
    /// Treatment of the parent's uncommitted work.
    pub dirty: Dirty,
}

/// The commit a worktree starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// The current commit of the parent's checkout.
    #[default]
    Head,
    /// The remote's default branch, as last fetched.
    Fresh,
}

/// Treatment of the parent's uncommitted work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dirty {
    /// It stays where it is, and the agent is told that its worktree lacks it.
    #[default]
    Tell,
    /// It is copied into the worktree, also uncommitted.
    Carry,
}

/// A worktree; stored with its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its directory.
    pub path: PathBuf,
    /// The top directory of the parent's checkout, from which it was made.
    pub origin: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The commit it was made from.
    pub base: String,
    /// The tree of uncommitted work copied into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<String>,
    /// True if a hook of the user made it: git knows nothing of it, its branch is empty, and it is
    /// kept unless a hook removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hook: bool,
}

/// A worktree that was just made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The worktree.
    pub worktree: Worktree,
    /// Description of the base, for example `main, 3f2a91c "Fix the parser"`.
    pub base: String,
    /// Description of the parent's uncommitted work that is not in it, for example
    /// `3 changed files: a.rs, b.rs, c.rs`.
    pub missing: Option<String>,
    /// Description of the parent's uncommitted work that is in it.
    pub carried: Option<String>,
}
