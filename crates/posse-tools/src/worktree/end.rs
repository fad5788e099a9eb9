//! The end of a worktree: it is inspected, then removed or kept.

use std::fs;
use std::io;

use posse_port::worktree::Worktree;
use posse_protocol::AgentId;

use crate::git::{Git, GitError};

use super::reference::tip;
use super::registration::{Lock, gone_is_fine};
use super::worktree_root::WorktreeRoot;
use super::{Found, GitWorktrees, WorktreeError, branch_of, host, look};

/// Returns what would be lost with a worktree, if anything.
pub(super) fn changes(worktrees: &GitWorktrees, worktree: &Worktree) -> Option<String> {
    match worktrees.whose(worktree) {
        Ok((root, agent)) => look::keeps(&root, agent, worktree),
        Err(told) => Some(look::unseen(told)),
    }
}

/// Removes a worktree and its branch if nothing would be lost with it, else unlocks it. Returns
/// what is kept.
pub(super) fn release(worktrees: &GitWorktrees, worktree: &Worktree) -> Option<String> {
    let (root, agent) = match worktrees.whose(worktree) {
        Ok(found) => found,
        Err(told) => return Some(look::unseen(told)),
    };
    let lock = match root.lock() {
        Ok(lock) => lock,
        Err(error) => return Some(look::unseen(error)),
    };
    let registration = root.registration(agent);
    match registration.lock() {
        Lock::Host(host) if !worktrees.is_own(host) && host::lives(&worktrees.home, host) => {
            return Some("another posse process is using it".to_owned());
        }
        Lock::Stranger(reason) => return Some(format!("it is locked: {reason}")),
        Lock::Host(_) | Lock::Nobody => {}
    }
    if let Some(kept) = look::keeps(&root, agent, worktree) {
        // It is kept whether or not the lock can be removed.
        let _ = registration.unlock();
        return Some(kept);
    }
    let cleared = clear_if_clean(&root, agent, worktree);
    drop(lock);
    match cleared {
        Ok(Some(kept)) => {
            let _ = registration.unlock();
            Some(kept)
        }
        // Deleting the files takes longest, so it happens after the lock is dropped.
        Ok(None) => sink(&root, agent)
            .err()
            .map(|why| format!("it cannot be removed: {why}")),
        Err(why) => Some(format!("it cannot be removed: {why}")),
    }
}

/// Removes a worktree with everything in it, and its branch.
pub(super) fn discard(worktrees: &GitWorktrees, found: &Found) -> Result<(), WorktreeError> {
    let directory = found.path.parent().ok_or(WorktreeError::NoDirectory)?;
    let root = WorktreeRoot::at(directory, &worktrees.hold)?;
    if found.path != root.path(found.agent) {
        return Err(WorktreeError::NotOfPosse);
    }
    let _lock = root.lock()?;
    if worktrees.lives(&root, found.agent) {
        return Err(WorktreeError::InUse);
    }
    if let Lock::Stranger(reason) = root.registration(found.agent).lock() {
        return Err(WorktreeError::Locked { reason });
    }
    raze(&root, found.agent, None)?;
    let reference = format!("refs/heads/{}", branch_of(found.agent));
    if root.common.is_dir() && tip(&root, &reference)?.is_some() {
        // Git refuses if it is checked out elsewhere.
        let git = Git::change(&root.directory).directory(&root.common);
        git.words(["branch", "-q", "-D", &branch_of(found.agent)])
            .run()?;
    }
    Ok(())
}

/// Removes a worktree with all that is in it, and its branch if that is at `base`.
pub(super) fn raze(
    root: &WorktreeRoot,
    agent: AgentId,
    base: Option<&str>,
) -> Result<(), WorktreeError> {
    clear(root, agent, base)?;
    Ok(sink(root, agent)?)
}

/// Moves the worktree out of the way in one step, then forgets it. A process that finds a moved
/// worktree knows that nothing is lost with it, and can finish the removal.
fn clear(root: &WorktreeRoot, agent: AgentId, base: Option<&str>) -> Result<(), WorktreeError> {
    put_aside(root, agent)?;
    forget(root, agent, base)
}

/// Like [`clear`], for a worktree that was inspected: looks at its files once more after the
/// move, when nobody can write to them by path any more. Moves it back if something came in since
/// the first look, and returns what.
pub(super) fn clear_if_clean(
    root: &WorktreeRoot,
    agent: AgentId,
    worktree: &Worktree,
) -> Result<Option<String>, WorktreeError> {
    if put_aside(root, agent)?
        && let Some(late) = look::files_at(root, agent, worktree, root.gone(agent))
    {
        fs::rename(root.gone(agent), root.path(agent))?;
        return Ok(Some(late));
    }
    forget(root, agent, Some(&worktree.base))?;
    Ok(None)
}

/// Moves the directory out of the way. Returns true if there was one.
fn put_aside(root: &WorktreeRoot, agent: AgentId) -> io::Result<bool> {
    let path = root.path(agent);
    // A symbolic link was not made by posse.
    let there = path.symlink_metadata().is_ok_and(|there| there.is_dir());
    if there {
        sink(root, agent)?;
        fs::rename(&path, root.gone(agent))?;
    }
    Ok(there)
}

/// Finishes the removal of a worktree that was moved out of the way.
pub(super) fn finish(
    root: &WorktreeRoot,
    agent: AgentId,
    base: Option<&str>,
) -> Result<(), WorktreeError> {
    forget(root, agent, base)?;
    Ok(sink(root, agent)?)
}

/// Removes the branch, then the registration: in this order, since the base is recorded in the
/// registration.
fn forget(root: &WorktreeRoot, agent: AgentId, base: Option<&str>) -> Result<(), WorktreeError> {
    let registration = root.registration(agent);
    if registration.leads_elsewhere(&root.path(agent)) {
        // Somebody moved the worktree: it is theirs, with its branch.
        return Ok(());
    }
    if let Some(base) = base {
        drop_branch(root, agent, base)?;
    }
    Ok(registration.remove()?)
}

/// Deletes the files of a worktree that was moved out of the way.
pub(super) fn sink(root: &WorktreeRoot, agent: AgentId) -> io::Result<()> {
    gone_is_fine(fs::remove_dir_all(root.gone(agent)))
}

/// Removes the branch if it is still at `base`.
fn drop_branch(root: &WorktreeRoot, agent: AgentId, base: &str) -> Result<(), GitError> {
    let reference = format!("refs/heads/{}", branch_of(agent));
    if !root.common.is_dir() || tip(root, &reference)?.as_deref() != Some(base) {
        return Ok(());
    }
    let delete = || {
        let git = Git::change(&root.directory).directory(&root.common);
        git.words(["update-ref", "-d", &reference, base]).run()
    };
    // Left by a git that was killed. Nobody else uses this branch, so it can be removed.
    let stale = root.common.join(format!("{reference}.lock"));
    let deleted = match delete() {
        Err(_) if fs::remove_file(stale).is_ok() => delete(),
        deleted => deleted,
    };
    deleted.map(drop)
}
