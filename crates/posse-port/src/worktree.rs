//! The worktree port: checkouts that agents have for themselves.

use std::path::PathBuf;

use posse_protocol::AgentId;
use serde::{Deserialize, Serialize};

use super::BoxFuture;

/// Makes worktrees, and takes them back. Nothing that is not committed is ever destroyed.
pub trait Worktrees: Send + Sync {
    /// Makes one, locked for its agent. If it fails, nothing is left of it; the text says why, for a model.
    fn make(&self, wanted: Wanted) -> BoxFuture<'static, Result<Made, String>>;

    /// What would be lost if it were removed, in a line; none if nothing would. What cannot be found out
    /// counts as something.
    fn changes(&self, worktree: &Worktree) -> BoxFuture<'static, Option<String>>;

    /// Its agent has ended: it is removed, with its branch, if nothing would be lost, else unlocked and
    /// kept. What is kept, as in [`changes`](Self::changes).
    fn release(&self, worktree: &Worktree) -> BoxFuture<'static, Option<String>>;

    /// Its agent goes on: it is locked again, and made again if it is not there any more. Whether it had
    /// to be made; else why it cannot be had.
    fn reclaim(&self, worktree: &Worktree) -> BoxFuture<'static, Result<bool, String>>;
}

/// What is wanted of a new worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whose it will be: branch and directory are named after it.
    pub agent: AgentId,
    /// Where its parent works.
    pub from: PathBuf,
    /// What it begins with.
    pub base: Base,
    /// What becomes of the parent's uncommitted work.
    pub dirty: Dirty,
}

/// What a worktree begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// The commit that the parent's checkout is at.
    #[default]
    Head,
    /// The remote's default branch, as it was last fetched.
    Fresh,
}

/// What becomes of work of the parent that is not committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dirty {
    /// It stays where it is, and the agent is told that it is not in its worktree.
    #[default]
    Tell,
    /// A copy of it is in the worktree, uncommitted as well.
    Carry,
}

/// A worktree; kept with its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its directory.
    pub path: PathBuf,
    /// The checkout that it was made from: the top directory of the parent's.
    pub origin: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The commit that it was made from.
    pub base: String,
    /// The tree of uncommitted work that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<String>,
}

/// A worktree that was just made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The worktree.
    pub worktree: Worktree,
    /// What the base is, in words: `main, 3f2a91c "Fix the parser"` for one.
    pub base: String,
    /// Uncommitted work of the parent that is not in it, in words: `3 changed files: a.rs, b.rs, c.rs`.
    pub missing: Option<String>,
    /// Uncommitted work of the parent that is in it, in words.
    pub carried: Option<String>,
}
