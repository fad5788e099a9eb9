//! Decides where agents work: in their parent's directory, in another, or in a worktree of their
//! own.

use std::io;
use std::path::{Path, PathBuf};

use posse_permission::Rights;
use posse_port::store::AgentRecord;
use posse_port::tool::Workspace;
use posse_port::worktree::Made;

use crate::definition::terms::Terms;
use crate::live::registry::LiveAgent;
use crate::session::worktree_guard::WorktreeGuard;

/// Why an agent cannot work in its directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    #[error("isolation: {0}")]
    Isolation(String),
    #[error("its worktree belongs to another repository")]
    OtherRepository,
    #[error("it worked in the worktree of an agent that has ended")]
    OwnerEnded,
    #[error("it is outside its worktree")]
    OutsideWorktree,
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{0} is not a directory there")]
    NotADirectoryThere(PathBuf),
    #[error("cwd: {0} is not a directory")]
    NotADirectory(PathBuf),
    #[error("cwd: {path}: {error}")]
    Cwd { path: PathBuf, error: io::Error },
}

/// Returns the workspace of an agent that `parent` starts.
pub(crate) fn workspace(
    parent: &LiveAgent,
    cwd: Option<&Path>,
    worktree_guard: &WorktreeGuard,
    terms: &mut Terms,
) -> Result<Workspace, WorkspaceError> {
    let above = parent.rights.workspace();
    let mut workspace = match (&worktree_guard.made, cwd) {
        (Some(Made { worktree, .. }), _) => {
            let within = above.in_worktree(&worktree.path, &worktree.origin);
            let workspace = within.map_err(|why| WorkspaceError::Isolation(why.to_string()))?;
            terms.worktree = Some(worktree.clone());
            make_room(&workspace, &worktree.path)
                .map_err(|why| WorkspaceError::Isolation(why.to_string()))?;
            workspace
        }
        (None, Some(cwd)) => above.below(resolved(above.cwd.join(cwd))?),
        (None, None) => above.below(above.cwd.clone()),
    };
    terms.copies = workspace
        .mirror
        .as_ref()
        .map(|mirror| mirror.of.clone())
        .unwrap_or_default();
    workspace.notes = terms.notes.clone();
    Ok(workspace)
}

/// Returns the workspace of an agent that is revived below `above`. An agent with a worktree works
/// there or not at all; another moves to the directory above if its own is not allowed any more.
pub(crate) fn workspace_again(
    above: &Rights,
    record: &AgentRecord,
    terms: &Terms,
) -> Result<Workspace, WorkspaceError> {
    let here = above.workspace();
    let shared = here
        .mirror
        .as_ref()
        .is_some_and(|mirror| record.cwd.starts_with(&mirror.here));
    let mut workspace = match &terms.worktree {
        Some(worktree) => {
            // If its parent is gone, `above` works in the original of the parent's checkout, so the
            // originals are tried one after the other.
            let origins = [&worktree.origin].into_iter().chain(&terms.copies);
            let found = origins.map(|origin| {
                here.below(origin.clone())
                    .in_worktree(&worktree.path, origin)
            });
            let within = |workspace: &Workspace| !workspace.roots.is_empty();
            let found = found
                .flatten()
                .find(within)
                .ok_or(WorkspaceError::OtherRepository)?;
            let workspace = Workspace {
                cwd: record.cwd.clone(),
                ..found
            };
            make_room(&workspace, &worktree.path)?;
            workspace
        }
        None if !terms.copies.is_empty() && !shared => {
            return Err(WorkspaceError::OwnerEnded);
        }
        None if here.roots.iter().any(|root| record.cwd.starts_with(root)) => {
            here.below(record.cwd.clone())
        }
        None => here.below(here.cwd.clone()),
    };
    workspace.notes.clone_from(&terms.notes);
    Ok(workspace)
}

/// Makes the directories of a worktree that an agent works in: untracked ones are not part of a
/// checkout. Links are not followed, because they could lead out of it.
fn make_room(workspace: &Workspace, top: &Path) -> Result<(), WorkspaceError> {
    for directory in workspace.roots.iter().chain([&workspace.cwd]) {
        let inside = directory
            .strip_prefix(top)
            .map_err(|_| WorkspaceError::OutsideWorktree)?;
        let mut at = top.to_owned();
        for part in inside {
            at.push(part);
            let failed = |error| WorkspaceError::Io {
                path: at.clone(),
                error,
            };
            match at.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(WorkspaceError::NotADirectoryThere(at)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    std::fs::create_dir(&at).map_err(failed)?;
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
    Ok(())
}

/// Returns a directory with all links in its path resolved.
fn resolved(path: PathBuf) -> Result<PathBuf, WorkspaceError> {
    match path.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(path) => Err(WorkspaceError::NotADirectory(path)),
        Err(error) => Err(WorkspaceError::Cwd { path, error }),
    }
}
