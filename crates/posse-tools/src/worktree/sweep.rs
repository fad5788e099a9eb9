//! Lists all worktrees for people, and removes those that dead processes left.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use posse_port::worktree::Worktree;
use posse_protocol::AgentId;

use super::end::{clear_if_clean, finish, raze, sink};
use super::reclaim::settle;
use super::registration::{Lock, Marked};
use super::worktree_root::{WorktreeRoot, entries, tidy};
use super::{Found, GitWorktrees, Swept, host, look};

impl GitWorktrees {
    /// Returns every worktree, with what would be lost by removing it. Blocks.
    pub fn list(&self) -> io::Result<Vec<Found>> {
        self.list_of(|_| true)
    }

    /// Like [`Self::list`], but only those of some agents; the others are not inspected.
    pub fn list_of(&self, meant: impl Fn(AgentId) -> bool) -> io::Result<Vec<Found>> {
        let roots = self.roots()?;
        let found = roots
            .iter()
            .flat_map(|root| known(root).into_iter().map(move |agent| (root, agent)))
            .filter(|(_, agent)| meant(*agent));
        Ok(found.map(|(root, agent)| self.found(root, agent)).collect())
    }

    /// Removes every unused worktree with which nothing is lost, and unlocks the others. Returns
    /// both. Blocks.
    pub fn sweep(&self) -> Vec<Swept> {
        self.sweep_those(|_| true)
    }

    /// Like [`Self::sweep`], but only for worktrees of dead processes that no sweep has seen yet.
    /// Those kept by an earlier sweep are unlocked and are not inspected again. Blocks.
    pub fn sweep_left(&self) -> Vec<Swept> {
        self.sweep_those(|lock| matches!(lock, Lock::Host(_)))
    }

    fn sweep_those(&self, meant: impl Fn(Lock) -> bool) -> Vec<Swept> {
        let roots = self.roots().unwrap_or_default();
        for entry in entries(&self.home) {
            tidy(&entry.path());
        }
        let swept = roots
            .iter()
            .flat_map(|root| self.sweep_root(root, &meant))
            .collect();
        if !roots.is_empty() {
            host::forget(&self.home);
        }
        swept
    }

    pub(super) fn roots(&self) -> io::Result<Vec<WorktreeRoot>> {
        let directories = match fs::read_dir(&self.home) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        // Git was given canonical paths, and they are compared with these.
        let home = self.home.canonicalize()?;
        let mut names: Vec<_> = directories
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        Ok(names
            .iter()
            .filter_map(|name| WorktreeRoot::at(&home.join(name), &self.hold).ok())
            .collect())
    }

    fn sweep_root(&self, root: &WorktreeRoot, meant: impl Fn(Lock) -> bool) -> Vec<Swept> {
        let Ok(_lock) = root.lock() else {
            return Vec::new();
        };
        for agent in root.contents().gone {
            // If this fails, the next sweep tries again.
            let _ = finish(root, agent, self.base(root, agent).as_deref());
        }
        let known = known(root);
        for (agent, host, note) in root.making() {
            // Another process may have continued with it since.
            if host::lives(&self.home, host) || self.lives(root, agent) {
                continue;
            }
            // If this fails, the next sweep tries again.
            let _ = settle(root, agent, host, note);
        }
        let known = known
            .into_iter()
            .filter(|agent| meant(root.registration(*agent).lock()));
        known
            .filter_map(|agent| self.sweep_one(root, agent))
            .collect()
    }

    /// Sweeps one worktree. Returns none if there is none any more, or if its agent is alive.
    pub(super) fn sweep_one(&self, root: &WorktreeRoot, agent: AgentId) -> Option<Swept> {
        if self.lives(root, agent) {
            return None;
        }
        let registration = root.registration(agent);
        let path = root.path(agent);
        if !registration.leads_to(&path) && path.symlink_metadata().is_err() {
            return None;
        }
        let mut found = self.found(root, agent);
        if found.keeps.is_none() {
            let cleared = match self.marked(root, agent) {
                Some(worktree) => clear_if_clean(root, agent, &worktree),
                None => raze(root, agent, found.base.as_deref()).map(|()| None),
            };
            match cleared {
                // Files that cannot be deleted now are moved aside already; the next sweep tries
                // again.
                Ok(None) => {
                    let _ = sink(root, agent);
                    return Some(Swept {
                        found,
                        removed: true,
                    });
                }
                Ok(late) => found.keeps = late,
                Err(_) => {}
            }
        }
        if !matches!(registration.lock(), Lock::Stranger(_)) {
            let _ = registration.unlock();
        }
        Some(Swept {
            found,
            removed: false,
        })
    }

    fn base(&self, root: &WorktreeRoot, agent: AgentId) -> Option<String> {
        self.marked(root, agent).map(|worktree| worktree.base)
    }

    /// Returns the worktree as it was handed out, if that is known.
    pub(super) fn marked(&self, root: &WorktreeRoot, agent: AgentId) -> Option<Worktree> {
        match root.registration(agent).marked() {
            Marked::Yes(marker)
                if marker.agent == agent && marker.worktree.path == root.path(agent) =>
            {
                Some(marker.worktree)
            }
            _ => None,
        }
    }

    /// Returns true if the worktree belongs, or is about to belong, to an agent of a live
    /// process.
    pub(super) fn lives(&self, root: &WorktreeRoot, agent: AgentId) -> bool {
        // The note is read first: it is removed only after the registration is complete.
        let lives = |id| host::lives(&self.home, id);
        let making = root
            .making()
            .iter()
            .any(|(made, host, _)| *made == agent && lives(*host));
        making || matches!(root.registration(agent).lock(), Lock::Host(host) if lives(host))
    }

    /// Describes a worktree.
    pub(super) fn found(&self, root: &WorktreeRoot, agent: AgentId) -> Found {
        let (path, live) = (root.path(agent), self.lives(root, agent));
        let registration = root.registration(agent);
        let worktree = self.marked(root, agent);
        let keeps = match &worktree {
            _ if live && worktree.is_none() => None,
            Some(worktree) => look::keeps(root, agent, worktree),
            None => unmarked(root, agent, &path),
        };
        let keeps = keeps.or_else(|| match registration.lock() {
            Lock::Stranger(reason) => Some(format!("it is locked: {reason}")),
            Lock::Host(_) | Lock::Nobody => None,
        });
        Found {
            agent,
            origin: worktree.as_ref().map(|worktree| worktree.origin.clone()),
            branch: worktree.as_ref().map(|worktree| worktree.branch.clone()),
            base: worktree.map(|worktree| worktree.base),
            path,
            live,
            keeps,
        }
    }
}

/// Returns what would be lost with a directory of which nothing else is known.
fn unmarked(root: &WorktreeRoot, agent: AgentId, path: &Path) -> Option<String> {
    if root.registration(agent).exists() {
        return Some(look::unseen("posse's note on it cannot be read"));
    }
    look::holds_files(path).then(|| look::unseen("git no longer knows it"))
}

/// Returns the agents that have a worktree here, by directory or by git's registration.
pub(super) fn known(root: &WorktreeRoot) -> BTreeSet<AgentId> {
    let mut agents: BTreeSet<AgentId> = root.contents().agents.into_iter().collect();
    let names = entries(&root.common.join("worktrees"))
        .filter_map(|entry| entry.file_name().into_string().ok());
    let registered = names.filter_map(|name| name.parse().ok());
    agents
        .extend(registered.filter(|agent| root.registration(*agent).leads_to(&root.path(*agent))));
    agents
}
