//! Makes a worktree, and removes one that was not finished.

use std::fs::DirBuilder;
use std::path::Path;
use std::thread;

use posse_port::worktree::{Dirty, Made, Wanted, Worktree};
use posse_protocol::AgentId;
use uuid::Uuid;

use crate::git::{Git, GitError};

use super::carry::{self, Carried};
use super::end;
use super::parent::Parent;
use super::words::name;
use super::worktree_root::{MakingNote, WorktreeRoot};
use super::{GitWorktrees, WorktreeError, branch_of};

/// A worktree that is being made by this process.
pub(super) struct Making<'a> {
    pub(super) root: &'a WorktreeRoot,
    pub(super) agent: AgentId,
    pub(super) host: Uuid,
    pub(super) note: MakingNote,
}

/// How often making is tried while git runs into worktrees that other gits have half registered.
const MOST_TRIES: u32 = 20;

/// Makes a worktree. If that fails, nothing is left of it.
pub(super) fn make(worktrees: &GitWorktrees, wanted: &Wanted) -> Result<Made, WorktreeError> {
    let parent = Parent::ask(&wanted.from, wanted.base, &worktrees.hold)?;
    let host = worktrees.host().map_err(WorktreeError::NoPlace)?;
    let root = WorktreeRoot::claim(&host.home, &parent.common, &worktrees.hold)
        .map_err(WorktreeError::NoPlace)?;
    let worktree = Worktree {
        path: root.path(wanted.agent),
        origin: parent.top.clone(),
        branch: branch_of(wanted.agent),
        base: parent.base.clone(),
        carried: None,
        by_hook: false,
    };
    let note = MakingNote {
        worktree,
        branch: true,
    };
    let making = Making {
        root: &root,
        agent: wanted.agent,
        host: host.id,
        note,
    };
    let mut tries = 0;
    loop {
        tries += 1;
        match try_to_make(worktrees, wanted, &parent, &making) {
            Err(error) if tries < MOST_TRIES && error.is_half_made() => {}
            made => return made,
        }
    }
}

/// Tries once to make the worktree. If that fails, nothing is left of it.
fn try_to_make(
    worktrees: &GitWorktrees,
    wanted: &Wanted,
    parent: &Parent,
    making: &Making<'_>,
) -> Result<Made, WorktreeError> {
    making.begin()?;
    let made = thread::scope(|scope| {
        // Uncommitted changes apply to the parent's HEAD only, so with another base they stay.
        let dirty = if parent.base == parent.head {
            wanted.dirty
        } else {
            Dirty::Tell
        };
        let look =
            (dirty == Dirty::Tell).then(|| scope.spawn(|| worktrees.looks.uncommitted(parent)));
        let made = making.fill(parent, dirty);
        let missing = look.and_then(|look| look.join().unwrap_or(None));
        made.map(|made| Made {
            missing: missing.or(made.missing),
            ..made
        })
    });
    made.map_err(|error| making.undo(error))
}

impl Making<'_> {
    /// Writes the note and creates the directory, which must not exist yet.
    pub(super) fn begin(&self) -> Result<(), WorktreeError> {
        let path = &self.note.worktree.path;
        if path.symlink_metadata().is_ok() {
            return Err(WorktreeError::Occupied { path: path.clone() });
        }
        self.root
            .begin(self.agent, self.host, &self.note)
            .map_err(WorktreeError::NoPlace)?;
        DirBuilder::new().create(path).map_err(|error| {
            let _ = self.root.finish(self.agent, self.host);
            WorktreeError::NoPlace(error)
        })
    }

    /// Lets git check it out, copies uncommitted work if wanted, and hands it out.
    fn fill(&self, parent: &Parent, dirty: Dirty) -> Result<Made, WorktreeError> {
        let worktree = &self.note.worktree;
        let printed = self.add(
            Git::change(&parent.top),
            &["-b", &worktree.branch],
            &worktree.base,
        )?;
        let carried = match dirty {
            Dirty::Carry => self.carry(parent)?,
            Dirty::Tell => Carried::default(),
        };
        let worktree = Worktree {
            carried: carried.tree.clone(),
            ..worktree.clone()
        };
        self.hand_out(&worktree)?;
        Ok(Made {
            base: base_in_words(parent, &printed),
            worktree,
            missing: carried.missing,
            carried: carried.carried,
        })
    }

    /// Lets git make the worktree, locked, and returns what git printed. Registers and checks out
    /// in two calls, as git itself does in one: only the registering has to be done one at a
    /// time.
    pub(super) fn add(
        &self,
        git: Git,
        branch: &[&str],
        start: &str,
    ) -> Result<String, WorktreeError> {
        let worktree = &self.note.worktree;
        let registration = self.root.registration(self.agent);
        let reason = registration.reason(self.host);
        let git = git.words([
            "worktree",
            "add",
            "--no-checkout",
            "--lock",
            "--reason",
            &reason,
        ]);
        {
            let _noting = self.root.lock_notes().map_err(WorktreeError::NoPlace)?;
            let noted = git.words(branch).word(&worktree.path).word(start).run();
            noted.map_err(WorktreeError::NotMade)?;
        }
        let filled = Git::change_files(&worktree.path, &self.root.hold)
            .words(["reset", "--hard", "--no-recurse-submodules"])
            .line();
        let printed = filled.map_err(WorktreeError::NotMade)?;
        let ours =
            registration.leads_to(&worktree.path) && registration.is_known_at(&worktree.path);
        let real = worktree
            .path
            .canonicalize()
            .is_ok_and(|real| real == worktree.path);
        if ours && real {
            Ok(printed)
        } else {
            Err(WorktreeError::Misplaced {
                path: worktree.path.clone(),
            })
        }
    }

    /// Copies the uncommitted work of the parent.
    fn carry(&self, parent: &Parent) -> Result<Carried, WorktreeError> {
        let failed = |source: GitError| WorktreeError::NotCarried {
            top: parent.top.clone(),
            source,
        };
        let carried =
            carry::gather(parent, &self.root.registration(self.agent).directory).map_err(failed)?;
        if let Some(tree) = &carried.tree {
            carry::unpack(&self.note.worktree.path, tree, &self.root.hold).map_err(failed)?;
        }
        Ok(carried)
    }

    /// Marks it as finished: from now on an agent may work in it.
    pub(super) fn hand_out(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        // Not synced: a file system that loses this in a power cut has also lost what was written
        // in the worktree later.
        self.root
            .registration(self.agent)
            .mark(worktree)
            .map_err(WorktreeError::NoPlace)?;
        self.root
            .finish(self.agent, self.host)
            .map_err(WorktreeError::NoPlace)
    }

    /// Removes what was begun. Returns why it could not be made, and why something is left if that
    /// is so.
    pub(super) fn undo(&self, why: WorktreeError) -> WorktreeError {
        match take_back(self.root, self.agent, self.host, &self.note) {
            Ok(()) => why,
            Err(left) => WorktreeError::LeftBehind {
                why: why.into(),
                left: left.into(),
            },
        }
    }
}

/// Removes what was begun. Nobody has worked in it yet, so nothing is checked.
pub(super) fn take_back(
    root: &WorktreeRoot,
    agent: AgentId,
    host: Uuid,
    note: &MakingNote,
) -> Result<(), WorktreeError> {
    let base = note.branch.then_some(note.worktree.base.as_str());
    if note.branch {
        // Left by a git that was killed. Nobody else uses this branch, so it can be removed.
        let lock = root
            .common
            .join(format!("refs/heads/{}.lock", note.worktree.branch));
        let _ = std::fs::remove_file(lock);
    }
    end::raze(root, agent, base)?;
    Ok(root.finish(agent, host)?)
}

/// Describes the base, like `main, 3f2a91c "Fix the parser"`.
fn base_in_words(parent: &Parent, printed: &str) -> String {
    let now_at = printed
        .lines()
        .find_map(|line| line.strip_prefix("HEAD is now at "));
    let (short, subject) = now_at
        .and_then(|text| text.split_once(' '))
        .unwrap_or((&parent.base, ""));
    let subject: String = subject
        .chars()
        .filter(|c| !c.is_control())
        .take(100)
        .collect();
    let branch = parent.branch.as_ref().map_or_else(String::new, |branch| {
        format!("{}, ", name(Path::new(branch)))
    });
    format!("{branch}{short} \"{subject}\"")
}
