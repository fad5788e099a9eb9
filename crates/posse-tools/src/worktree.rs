//! Git worktrees for agents: made, kept or removed, found again.
//!
//! Each file beneath is one thing that is done with a worktree (`make`, `look`, `review`, `end`,
//! `reclaim`, `sweep`) or one thing that there is (`root`, `registration`, `host`, `parent`). Nothing that is
//! not committed is ever destroyed: what is removed was looked at before, or nobody has ever worked
//! in it.

mod branches;
mod carry;
mod end;
mod error;
mod gate;
mod host;
mod look;
mod make;
mod named;
mod parent;
mod reclaim;
mod reference;
mod registration;
mod review;
mod status;
mod sweep;
mod words;
mod worktree_root;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use posse_port::BoxFuture;
use posse_port::worktree::{Base, Made, Wanted, Worktree, Worktrees};
use posse_protocol::AgentId;
use tokio::task::spawn_blocking;
use uuid::Uuid;

pub use branches::FoundBranch;
pub use error::WorktreeError;
pub use gate::CheckoutGate;
pub use review::{ChangedFile, WorktreeDiff, WorktreePlace, WorktreeSummary};

use crate::git::GitHold;
use crate::sandbox::Sandbox;
use host::WorktreeHost;
use parent::{Looks, Parent};
use worktree_root::WorktreeRoot;

/// Worktrees in a directory of posse's own.
#[derive(Clone, Debug)]
pub struct GitWorktrees {
    home: PathBuf,
    host: Arc<Mutex<Option<Arc<SettledHost>>>>,
    looks: Arc<Looks>,
    /// What holds the programs that repositories have git run.
    hold: GitHold,
    /// Decides where worktrees are made; everywhere, if there is none.
    gate: Option<Arc<dyn CheckoutGate>>,
}

/// This process, at a home.
#[derive(Debug)]
struct SettledHost {
    home: PathBuf,
    id: Uuid,
    _host: WorktreeHost,
}

/// A worktree that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whose it is.
    pub agent: AgentId,
    /// Its directory.
    pub path: PathBuf,
    /// The checkout that it was made from, if that is known.
    pub origin: Option<PathBuf>,
    /// Its branch, if that is known.
    pub branch: Option<String>,
    /// The commit that it was made from, if that is known.
    pub base: Option<String>,
    /// True if its agent belongs to a process that lives.
    pub live: bool,
    /// What would be lost with it.
    pub keeps: Option<String>,
}

/// What the sweep did with a worktree of a dead process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The worktree, as it was.
    pub found: Found,
    /// True if it was removed. If not, it is unlocked.
    pub removed: bool,
}

impl GitWorktrees {
    /// Worktrees beneath `home`, which is made when the first is wanted.
    pub fn new(home: PathBuf) -> Self {
        Self {
            home,
            host: Arc::default(),
            looks: Arc::default(),
            hold: GitHold::default(),
            gate: None,
        }
    }

    /// Has a sandbox hold the programs that repositories have git run.
    pub fn held_by(self, sandbox: Option<Sandbox>) -> Self {
        Self {
            hold: GitHold::new(sandbox, &self.home),
            ..self
        }
    }

    /// Makes worktrees only of checkouts that a gate allows.
    pub fn behind(self, gate: Arc<dyn CheckoutGate>) -> Self {
        Self {
            gate: Some(gate),
            ..self
        }
    }

    /// Checks whether a worktree of the checkout around `from` can be made. Blocks.
    pub fn check(&self, from: &Path, base: Base) -> Result<(), WorktreeError> {
        self.must_be_allowed(from)?;
        Parent::ask(from, base, &self.hold)?;
        Ok(())
    }

    /// Removes a worktree with all that is in it, and its branch: somebody has said so. Refused
    /// while its agent lives. Blocks.
    pub fn discard(&self, found: &Found) -> Result<(), WorktreeError> {
        end::discard(self, found)
    }

    /// Fails if git may not be run in a checkout.
    fn must_be_allowed(&self, checkout: &Path) -> Result<(), WorktreeError> {
        match &self.gate {
            Some(gate) if !gate.allows(checkout) => Err(WorktreeError::Untrusted),
            _ => Ok(()),
        }
    }

    /// This process, which settles when it is first needed.
    fn host(&self) -> io::Result<Arc<SettledHost>> {
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = &*host {
            return Ok(Arc::clone(host));
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.home)?;
        let home = self.home.canonicalize()?;
        let settled = WorktreeHost::settle(&home)?;
        let settled = Arc::new(SettledHost {
            home,
            id: settled.id,
            _host: settled,
        });
        *host = Some(Arc::clone(&settled));
        Ok(settled)
    }

    fn is_own(&self, id: Uuid) -> bool {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        host.as_ref().is_some_and(|host| host.id == id)
    }

    /// Returns where a worktree lies, and whose it is.
    fn whose(&self, worktree: &Worktree) -> Result<(WorktreeRoot, AgentId), WorktreeError> {
        let unknown = || WorktreeError::NotOfThisPosse {
            path: worktree.path.clone(),
        };
        let agent = worktree
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.parse().ok());
        let directory = worktree.path.parent().ok_or_else(unknown)?;
        let home = self.home.canonicalize().map_err(|_| unknown())?;
        if directory.parent() != Some(&home) {
            return Err(unknown());
        }
        let root = WorktreeRoot::at(directory, &self.hold).map_err(|_| unknown())?;
        Ok((root, agent.ok_or_else(unknown)?))
    }
}

/// Returns the branch of an agent's worktree.
fn branch_of(agent: AgentId) -> String {
    format!("posse/{agent}")
}

impl Worktrees for GitWorktrees {
    fn make(&self, wanted: Wanted) -> BoxFuture<'static, Result<Made, String>> {
        let worktrees = self.clone();
        Box::pin(async move {
            let made = spawn_blocking(move || {
                worktrees.must_be_allowed(&wanted.from)?;
                let made = make::make(&worktrees, &wanted)?;
                Ok(HandedWorktree {
                    worktrees,
                    made: Some(made),
                })
            });
            made.await
                .unwrap_or_else(|error| Err(WorktreeError::BrokeOff(error)))
                .and_then(HandedWorktree::taken)
                .map_err(|error| error.to_string())
        })
    }

    fn changes(&self, worktree: &Worktree) -> BoxFuture<'static, Option<String>> {
        let (worktrees, worktree) = (self.clone(), worktree.clone());
        Box::pin(async move {
            if worktree.by_hook {
                return Some(words::BY_HOOK.to_owned());
            }
            let looked = spawn_blocking(move || end::changes(&worktrees, &worktree)).await;
            looked.unwrap_or_else(|error| Some(look::unseen(WorktreeError::BrokeOff(error))))
        })
    }

    fn release(&self, worktree: &Worktree) -> BoxFuture<'static, Option<String>> {
        let (worktrees, worktree) = (self.clone(), worktree.clone());
        Box::pin(async move {
            if worktree.by_hook {
                return Some(words::BY_HOOK.to_owned());
            }
            let released = spawn_blocking(move || end::release(&worktrees, &worktree)).await;
            released.unwrap_or_else(|error| Some(look::unseen(WorktreeError::BrokeOff(error))))
        })
    }

    fn reclaim(&self, worktree: &Worktree) -> BoxFuture<'static, Result<bool, String>> {
        let (worktrees, worktree) = (self.clone(), worktree.clone());
        Box::pin(async move {
            let reclaimed = spawn_blocking(move || {
                if worktree.by_hook {
                    return match worktree.path.is_dir() {
                        true => Ok(false),
                        false => Err(WorktreeError::HookMadeGone(worktree.path)),
                    };
                }
                worktrees.must_be_allowed(&worktree.origin)?;
                reclaim::reclaim(&worktrees, &worktree)
            });
            let reclaimed = reclaimed.await;
            reclaimed
                .unwrap_or_else(|error| Err(WorktreeError::BrokeOff(error)))
                .map_err(|error| error.to_string())
        })
    }
}

/// A worktree on its way to whoever wanted it. If nobody takes it any more, it is released.
struct HandedWorktree {
    worktrees: GitWorktrees,
    made: Option<Made>,
}

impl HandedWorktree {
    fn taken(mut self) -> Result<Made, WorktreeError> {
        self.made.take().ok_or(WorktreeError::TakenTwice)
    }
}

impl Drop for HandedWorktree {
    fn drop(&mut self) {
        if let Some(made) = self.made.take() {
            let worktrees = self.worktrees.clone();
            // Whoever drops it must not wait. If the process ends first, the sweep does it.
            thread::spawn(move || end::release(&worktrees, &made.worktree));
        }
    }
}
