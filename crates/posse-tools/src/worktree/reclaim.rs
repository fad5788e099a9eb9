//! A worktree's agent goes on: it is locked again, and made again if it is gone.

use std::fs;

use posse_port::worktree::{Base, Worktree};
use posse_protocol::AgentId;
use uuid::Uuid;

use crate::git::Git;

use super::carry;
use super::end::finish;
use super::host;
use super::look;
use super::make::{Making, take_back};
use super::parent::Parent;
use super::reference::tip;
use super::registration::{Lock, Marked};
use super::worktree_root::{MakingNote, WorktreeRoot};
use super::{GitWorktrees, WorktreeError};

/// Locks a worktree again, and makes it again if it is gone. Returns true if it had to be made.
pub(super) fn reclaim(
    worktrees: &GitWorktrees,
    worktree: &Worktree,
) -> Result<bool, WorktreeError> {
    let host = worktrees.host().map_err(WorktreeError::NoPlace)?;
    let (root, agent) = match worktrees.whose(worktree) {
        Ok(found) => found,
        // Somebody has removed the whole worktree root; the checkout knows its repository.
        Err(_) => restore_root(worktrees, worktree)?,
    };
    let _lock = root.lock().map_err(WorktreeError::NoPlace)?;
    let registration = root.registration(agent);
    let lock = registration.lock();
    match &lock {
        Lock::Host(other) if *other != host.id && host::lives(&host.home, *other) => {
            return Err(WorktreeError::Taken {
                path: worktree.path.clone(),
            });
        }
        _ => {}
    }
    for (made, other, note) in root.making() {
        if made == agent && !host::lives(&host.home, other) {
            settle(&root, agent, other, note)?;
        }
    }
    if registration.leads_to(&worktree.path) && registration.is_known_at(&worktree.path) {
        // Somebody else's lock keeps it as well as ours would.
        if !matches!(lock, Lock::Stranger(_)) {
            registration
                .set_lock(host.id)
                .map_err(WorktreeError::NoPlace)?;
        }
        return Ok(false);
    }
    again(&root, agent, host.id, worktree).map(|()| true)
}

/// Returns the worktree root of a repository, made again, and the agent of a worktree in it.
fn restore_root(
    worktrees: &GitWorktrees,
    worktree: &Worktree,
) -> Result<(WorktreeRoot, AgentId), WorktreeError> {
    let parent = Parent::ask(&worktree.origin, Base::Head, &worktrees.hold)?;
    let host = worktrees.host().map_err(WorktreeError::NoPlace)?;
    WorktreeRoot::claim(&host.home, &parent.common, &worktrees.hold)
        .map_err(WorktreeError::NoPlace)?;
    worktrees.whose(worktree)
}

/// Somebody who is dead was making it: either it was handed out, or nothing of it counts.
pub(super) fn settle(
    root: &WorktreeRoot,
    agent: AgentId,
    host: Uuid,
    note: Option<MakingNote>,
) -> Result<(), WorktreeError> {
    match note {
        Some(note) if root.registration(agent).marked() == Marked::No => {
            take_back(root, agent, host, &note)
        }
        Some(_) => root.finish(agent, host).map_err(WorktreeError::NoPlace),
        None => {
            root.drop_notes(agent, host);
            Ok(())
        }
    }
}

/// Makes it again, as it was when its agent got it, with the commits that are on its branch.
fn again(
    root: &WorktreeRoot,
    agent: AgentId,
    host: Uuid,
    worktree: &Worktree,
) -> Result<(), WorktreeError> {
    let path = &worktree.path;
    // If it is empty, nothing is lost with it.
    if path.symlink_metadata().is_ok() && fs::remove_dir(path).is_err() {
        return Err(WorktreeError::Unregistered { path: path.clone() });
    }
    // Of one that was on its way out, the branch goes too; else it may have commits.
    let leaving = root.gone(agent).exists().then_some(worktree.base.as_str());
    if let Some(lost) = look::only_registered(root, agent, worktree).filter(|_| leaving.is_none()) {
        return Err(WorktreeError::OnlyRegistered {
            path: path.clone(),
            lost,
        });
    }
    finish(root, agent, leaving)?;
    let tip = tip(root, &format!("refs/heads/{}", worktree.branch))?;
    let note = MakingNote {
        worktree: worktree.clone(),
        branch: tip.is_none(),
    };
    let making = Making {
        root,
        agent,
        host,
        note,
    };
    making.begin()?;
    let git = Git::change(&root.directory).directory(&root.common);
    let added = match &tip {
        Some(_) => making.add(git, &[], &worktree.branch),
        None => making.add(git, &["-b", &worktree.branch], &worktree.base),
    };
    let filled = added.and_then(|_| match &worktree.carried {
        Some(tree) if tip.as_ref().is_none_or(|tip| *tip == worktree.base) => {
            carry::unpack(path, tree, &root.hold).map_err(WorktreeError::NotCarriedAgain)
        }
        _ => Ok(()),
    });
    filled
        .and_then(|()| making.hand_out(worktree))
        .map_err(|error| making.undo(error))
}
