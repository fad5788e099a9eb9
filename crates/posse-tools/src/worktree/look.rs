//! Looking at a worktree: would anything be lost if it were removed? What cannot be found out would
//! be.

mod ignored;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use posse_port::worktree::Worktree;
use posse_protocol::AgentId;

use crate::git::{Git, GitError};

use super::carry::DraftIndex;
use super::reference::tip;
use super::registration::{Registration, is_object, read_small};
use super::status::{self, ChangeKind, Status};
use super::words::{count, name, names};
use super::worktree_root::{WorktreeRoot, entries};

pub(super) use ignored::holds_files;

/// How far back is looked for commits that no branch has.
const MOST_COMMITS: usize = 2_000;

/// How long the record of where HEAD was may be, in bytes.
const MOST_RECORD: u64 = 16 << 20;

/// Files and directories of git's that say what is under way.
const UNDER_WAY: &[(&str, &str)] = &[
    ("MERGE_HEAD", "a merge under way"),
    ("MERGE_AUTOSTASH", "a merge under way"),
    ("rebase-merge", "a rebase under way"),
    ("rebase-apply", "a rebase under way"),
    ("CHERRY_PICK_HEAD", "a cherry-pick under way"),
    ("REVERT_HEAD", "a revert under way"),
    ("sequencer", "a sequence of commits under way"),
    ("BISECT_LOG", "a bisection under way"),
];

/// Returns what would be lost, in a line; none if nothing would.
pub(super) fn keeps(root: &WorktreeRoot, agent: AgentId, worktree: &Worktree) -> Option<String> {
    let registration = root.registration(agent);
    told(
        (Inspection {
            root,
            worktree,
            registration,
        })
        .all(),
    )
}

/// Why a worktree could not be looked at.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error("its repository is gone")]
    RepositoryGone,
    #[error("git no longer knows it")]
    Unregistered,
    #[error("its .git file was removed or replaced")]
    GitFileReplaced,
    #[error("git's output cannot be parsed")]
    Unreadable,
    #[error("the record of where HEAD was cannot be read")]
    UnreadableRecord,
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns what was found, in a line. What cannot be found out is something.
fn told(found: Result<Vec<String>, LookError>) -> Option<String> {
    match found {
        Ok(found) => (!found.is_empty()).then(|| found.join(", ")),
        Err(why) => Some(unseen(why)),
    }
}

/// Returns the files that are not as they were given, of a worktree that lies at `path` now.
pub(super) fn files_at(
    root: &WorktreeRoot,
    agent: AgentId,
    worktree: &Worktree,
    path: PathBuf,
) -> Option<String> {
    let registration = root.registration(agent);
    if !registration.exists() {
        return None;
    }
    let worktree = Worktree {
        path,
        ..worktree.clone()
    };
    let look = Inspection {
        root,
        worktree: &worktree,
        registration,
    };
    told(look.status(None).and_then(|status| look.files(status)))
}

/// Returns what would be lost with what git knows of a worktree whose directory is gone, but for
/// its branch.
pub(super) fn only_registered(
    root: &WorktreeRoot,
    agent: AgentId,
    worktree: &Worktree,
) -> Option<String> {
    let look = Inspection {
        root,
        worktree,
        registration: root.registration(agent),
    };
    told(
        look.tip()
            .and_then(|tip| look.registered(&tip.as_deref().into_iter().collect::<Vec<_>>())),
    )
}

/// Returns what is told of a worktree that cannot be looked at.
pub(super) fn unseen(why: impl Display) -> String {
    format!("could not be checked: {why}")
}

struct Inspection<'a> {
    root: &'a WorktreeRoot,
    worktree: &'a Worktree,
    registration: Registration,
}

impl Inspection<'_> {
    fn all(&self) -> Result<Vec<String>, LookError> {
        let path = &self.worktree.path;
        let there = path.symlink_metadata().is_ok();
        if !self.root.common.is_dir() {
            // Without the repository, commits are lost already.
            return if there {
                Err(LookError::RepositoryGone)
            } else {
                Ok(Vec::new())
            };
        }
        if !there {
            return self.without_directory();
        }
        if !self.registration.exists() {
            let nothing = path.is_dir() && !holds_files(path);
            return if nothing {
                self.without_directory()
            } else {
                Err(LookError::Unregistered)
            };
        }
        if !self.registration.is_known_at(path) {
            return Err(LookError::GitFileReplaced);
        }
        let status = self.status(None)?;
        let mut found = self.commits(&status)?;
        found.extend(self.under_way()?);
        found.extend(self.files(status)?);
        found.extend(self.hidden()?);
        Ok(found)
    }

    /// Only what was committed can be lost then.
    fn without_directory(&self) -> Result<Vec<String>, LookError> {
        let tip = self.tip()?;
        let tips: Vec<&str> = tip
            .as_deref()
            .filter(|tip| *tip != self.worktree.base)
            .into_iter()
            .collect();
        let mut found = if tips.is_empty() {
            Vec::new()
        } else {
            vec![self.ahead(&tips)?]
        };
        found.extend(self.registered(&tips)?);
        Ok(found)
    }

    /// Returns what only git's notes on this worktree lead to.
    fn registered(&self, tips: &[&str]) -> Result<Vec<String>, LookError> {
        if !self.registration.exists() {
            return Ok(Vec::new());
        }
        let mut found: Vec<String> = self.without_branch(tips)?.into_iter().collect();
        found.extend(self.under_way()?);
        Ok(found)
    }

    /// Git with this worktree's own directory, whatever lies in the worktree.
    fn git(&self) -> Git {
        let path = &self.worktree.path;
        Git::look_at_files(path, &self.root.hold)
            .directory(&self.registration.directory)
            .checkout(path)
    }

    fn status(&self, index: Option<&Path>) -> Result<Status, LookError> {
        let git = self
            .git()
            .words(["status", "--porcelain=v2", "-z", "--branch", "--no-renames"]);
        let git = git.words([
            "--untracked-files=normal",
            "--ignored=traditional",
            "--ignore-submodules=none",
        ]);
        let git = if let Some(index) = index {
            git.index(index)
        } else {
            git
        };
        let printed = git.run()?;
        status::parse(&printed).ok_or(LookError::Unreadable)
    }

    fn tip(&self) -> Result<Option<String>, LookError> {
        Ok(tip(
            self.root,
            &format!("refs/heads/{}", self.worktree.branch),
        )?)
    }

    /// Returns what was committed, and whether HEAD or the branch moved otherwise.
    fn commits(&self, status: &Status) -> Result<Vec<String>, LookError> {
        let (base, head) = (&self.worktree.base, &status.head);
        let on_branch = status.branch.as_ref() == Some(&self.worktree.branch);
        let branch = if on_branch { head.clone() } else { self.tip()? };
        let tips: BTreeSet<&str> = head
            .iter()
            .chain(&branch)
            .map(String::as_str)
            .filter(|tip| *tip != base)
            .collect();
        let tips: Vec<&str> = tips.into_iter().collect();
        let mut found = Vec::new();
        if head.is_none() {
            found.push("a branch without a commit".to_owned());
        } else if !tips.is_empty() {
            found.push(self.ahead(&tips)?);
        }
        if !on_branch {
            found.push(match &status.branch {
                Some(branch) => format!("it is on branch {}", name(Path::new(branch))),
                None => "it is on no branch".to_owned(),
            });
        }
        found.extend(self.without_branch(&tips)?);
        Ok(found)
    }

    /// Returns how many commits `tips` have that the base has not.
    fn ahead(&self, tips: &[&str]) -> Result<String, LookError> {
        let not_base = format!("^{}", self.worktree.base);
        let git = Git::look(&self.root.directory).directory(&self.root.common);
        let told = git
            .words(["rev-list", "--count"])
            .words(tips)
            .word(not_base)
            .word("--")
            .line();
        Ok(match number(told)? {
            0 => "its branch was moved back".to_owned(),
            commits => count(commits, "commit"),
        })
    }

    /// Commits that were made here, and that nothing leads to but the record of where HEAD was.
    fn without_branch(&self, tips: &[&str]) -> Result<Option<String>, LookError> {
        let mut once = self.record()?;
        once.remove(&self.worktree.base);
        for tip in tips {
            once.remove(*tip);
        }
        if once.is_empty() {
            return Ok(None);
        }
        if once.len() > MOST_COMMITS {
            return Ok(Some("too many commits to check".to_owned()));
        }
        let git = Git::look(&self.root.directory).directory(&self.root.common);
        let git = git
            .words(["rev-list", "--count", "--ignore-missing"])
            .words(&once);
        let told = git
            .word("--not")
            .word(&self.worktree.base)
            .words(tips)
            .words(["--glob=refs/*", "--"])
            .line();
        let commits = number(told)?;
        Ok((commits > 0).then(|| format!("{} on no branch", count(commits, "commit"))))
    }

    /// Returns where HEAD was.
    fn record(&self) -> Result<BTreeSet<String>, LookError> {
        let lines = match read_small(&self.registration.directory.join("logs/HEAD"), MOST_RECORD) {
            Ok(lines) => String::from_utf8_lossy(&lines).into_owned(),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error.into());
            }
            // It may be kept in another way.
            Err(_) => {
                let git = Git::look(&self.root.directory).directory(&self.registration.directory);
                let git = git.words(["reflog", "show", "--format=- %H", "HEAD", "--"]);
                git.line()?
            }
        };
        let commit = |line: &str| match line.split(' ').nth(1) {
            Some(commit) if is_object(commit) => Ok(commit.to_owned()),
            _ => Err(LookError::UnreadableRecord),
        };
        lines.lines().map(commit).collect()
    }

    fn under_way(&self) -> Result<Vec<String>, LookError> {
        let directory = &self.registration.directory;
        let begun = UNDER_WAY
            .iter()
            .filter(|(file, _)| directory.join(file).symlink_metadata().is_ok());
        let mut found: Vec<String> = begun.map(|(_, told)| (*told).to_owned()).collect();
        found.dedup();
        if holds_files(&directory.join("modules")) {
            found.push("repositories of submodules".to_owned());
        }
        let git = Git::look(&self.root.directory).directory(directory);
        let own = if self.root.common.join("reftable").exists() {
            let told = git
                .words([
                    "for-each-ref",
                    "refs/worktree",
                    "refs/bisect",
                    "refs/rewritten",
                ])
                .line();
            !told?.is_empty()
        } else {
            holds_files(&directory.join("refs"))
        };
        if own {
            found.push("references of its own".to_owned());
        }
        Ok(found)
    }

    /// Returns the files that are not as they were given.
    fn files(&self, status: Status) -> Result<Vec<String>, LookError> {
        let staged = |status: &Status| {
            paths(status, |kind| {
                matches!(kind, ChangeKind::Known { staged: true, .. })
            })
        };
        let mut uncommitted = staged(&status);
        let status = match &self.worktree.carried {
            Some(tree) if !status.entries.is_empty() => self.compared(tree)?,
            _ => status,
        };
        uncommitted.extend(paths(&status, |kind| {
            matches!(
                kind,
                ChangeKind::Known { changed: true, .. } | ChangeKind::New
            )
        }));
        let mut ignored = paths(&status, |kind| kind == ChangeKind::Ignored);
        ignored.retain(|path| !ignored::is_disposable(&self.worktree.path, path));
        let told = |paths: BTreeSet<PathBuf>, kind: &str| {
            let paths: Vec<PathBuf> = paths.into_iter().collect();
            (!paths.is_empty()).then(|| format!("{} ({})", count(paths.len(), kind), names(&paths)))
        };
        Ok([
            told(uncommitted, "uncommitted file"),
            told(ignored, "ignored file"),
        ]
        .into_iter()
        .flatten()
        .collect())
    }

    /// Returns how it differs from the tree that it was given.
    fn compared(&self, tree: &str) -> Result<Status, LookError> {
        let directory = &self.registration.directory;
        let draft = DraftIndex::copy(&directory.join("index"), directory)?;
        self.git()
            .index(&draft.0)
            .words(["read-tree", "--reset", "-i", tree])
            .run()?;
        self.status(Some(&draft.0))
    }

    /// Returns what git was told not to look at, and what it does not look into.
    fn hidden(&self) -> Result<Vec<String>, LookError> {
        let git = self.git().words(["ls-files", "-v", "--stage", "-z"]);
        let printed = git.run()?;
        let (mut hidden, mut submodules) = (Vec::new(), Vec::new());
        for record in printed
            .split(|byte| *byte == 0)
            .filter(|record| !record.is_empty())
        {
            let tab = memchr::memchr(b'\t', record).ok_or(LookError::Unreadable)?;
            let (about, path) = (
                &record[..tab],
                Path::new(std::ffi::OsStr::from_bytes(&record[tab + 1..])),
            );
            let unseen = about
                .first()
                .is_some_and(|tag| tag.is_ascii_lowercase() || *tag == b'S');
            let place = || self.worktree.path.join(path);
            if unseen && place().symlink_metadata().is_ok() {
                hidden.push(path);
            }
            if about[1..].starts_with(b" 160000 ") && entries(&place()).next().is_some() {
                submodules.push(path);
            }
        }
        let told = |paths: &[&Path], noun: &str| {
            (!paths.is_empty()).then(|| format!("{} ({})", count(paths.len(), noun), names(paths)))
        };
        let told = [
            told(&hidden, "file hidden from git's status"),
            told(&submodules, "submodule"),
        ];
        Ok(told.into_iter().flatten().collect())
    }
}

fn paths(status: &Status, which: impl Fn(ChangeKind) -> bool) -> BTreeSet<PathBuf> {
    status
        .entries
        .iter()
        .filter(|entry| which(entry.kind))
        .map(|entry| entry.path.clone())
        .collect()
}

fn number(told: Result<String, GitError>) -> Result<usize, LookError> {
    told?.parse().map_err(|_| LookError::Unreadable)
}
