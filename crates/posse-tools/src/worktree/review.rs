//! Reviewing a worktree: what differs in it from what it was made from, in numbers and line by line.
//!
//! Nothing in the worktree changes, not even its index: git compares by a copy of it.

mod patch;

use std::collections::BTreeSet;
use std::io;

use posse_port::worktree::Worktree;
use posse_protocol::{AgentId, FileDiff};

use crate::git::{Git, GitError, GitHold};

use super::carry::DraftIndex;
use super::registration::Registration;
use super::sweep::known;
use super::{GitWorktrees, WorktreeError};

/// Number of bytes of git's output about a whole worktree.
const MOST_BYTES: usize = 4 << 20;
/// Number of untracked files that are compared.
const MOST_UNTRACKED: usize = 2_000;

/// Whatever the settings of a person or a repository say, the output has one form, and no program
/// of theirs makes it. Files of more than 1 MiB are not compared by lines.
const SETTINGS: &[&str] = &[
    "core.quotePath=false",
    "core.bigFileThreshold=1m",
    "diff.suppressBlankEmpty=false",
];
const FORM: &[&str] = &[
    "-z",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--no-relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--submodule=short",
    "--ignore-submodules=none",
];

/// The name of the empty file in repositories of both kinds of names.
const EMPTY: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
const EMPTY_LONG: &str = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813";

/// A worktree as it was handed out to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreePlace {
    /// Whose it is.
    pub agent: AgentId,
    /// The worktree.
    pub worktree: Worktree,
    /// True if its agent belongs to a process that lives.
    pub live: bool,
}

/// How much of a worktree differs from what it was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorktreeSummary {
    /// Number of commits since its base.
    pub commits: u64,
    /// Number of files that differ, committed or not, also those that git does not know.
    pub files: u64,
    /// Number of lines that were added.
    pub added: u64,
    /// Number of lines that were removed.
    pub removed: u64,
}

/// All that differs in a worktree from what it was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeDiff {
    /// The files, by name.
    pub files: Vec<ChangedFile>,
    /// Number of files that are not among them, since there are too many.
    pub left_out: u64,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The change, with its path from the top of the worktree.
    pub change: FileDiff,
    /// What lines do not say: that it was deleted, or is not text.
    pub note: Option<String>,
}

impl GitWorktrees {
    /// Returns the worktrees of some agents that were handed out and are there. Git is not asked.
    /// Blocks.
    pub fn places_of(&self, meant: impl Fn(AgentId) -> bool) -> io::Result<Vec<WorktreePlace>> {
        let mut places = Vec::new();
        for root in self.roots()? {
            let agents: BTreeSet<AgentId> = known(&root);
            for agent in agents.into_iter().filter(|agent| meant(*agent)) {
                let worktree = self.marked(&root, agent);
                if let Some(worktree) = worktree.filter(|it| it.path.is_dir()) {
                    places.push(WorktreePlace {
                        agent,
                        worktree,
                        live: self.lives(&root, agent),
                    });
                }
            }
        }
        Ok(places)
    }

    /// Returns how much differs in a worktree. Blocks.
    pub fn summary(&self, worktree: &Worktree) -> Result<WorktreeSummary, WorktreeError> {
        let checkout = self.checkout(worktree)?;
        let (printed, left_out) = checkout.compared(&["--numstat"])?;
        let (numbers, _) = patch::numbers(&printed);
        Ok(WorktreeSummary {
            commits: checkout.commits()?,
            files: numbers.len() as u64 + left_out,
            added: numbers.iter().filter_map(|file| file.added).sum(),
            removed: numbers.iter().filter_map(|file| file.removed).sum(),
        })
    }

    /// Returns all that differs in a worktree, up to a bound that it names. Blocks.
    pub fn diff(&self, worktree: &Worktree) -> Result<WorktreeDiff, WorktreeError> {
        let checkout = self.checkout(worktree)?;
        let (printed, left_out) = checkout.compared(&["--numstat", "--patch"])?;
        let mut diff = patch::parse(&printed);
        diff.left_out += left_out;
        Ok(diff)
    }

    fn checkout<'a>(&self, worktree: &'a Worktree) -> Result<ReviewedCheckout<'a>, WorktreeError> {
        let (root, agent) = self.whose(worktree)?;
        let registration = root.registration(agent);
        if !registration.is_known_at(&worktree.path) {
            return Err(WorktreeError::NotThere {
                path: worktree.path.clone(),
            });
        }
        Ok(ReviewedCheckout {
            worktree,
            registration,
            hold: root.hold,
        })
    }
}

struct ReviewedCheckout<'a> {
    worktree: &'a Worktree,
    registration: Registration,
    hold: GitHold,
}

impl ReviewedCheckout<'_> {
    /// Git with this worktree's own directory, whatever lies in the worktree.
    fn git(&self) -> Git {
        let path = &self.worktree.path;
        Git::look_at_files(path, &self.hold)
            .directory(&self.registration.directory)
            .checkout(path)
    }

    /// Returns the number of commits since the base.
    fn commits(&self) -> Result<u64, WorktreeError> {
        let since = format!("{}..HEAD", self.worktree.base);
        let git = self.git().words(["rev-list", "--count", &since, "--"]);
        let unreadable = |_| io::Error::other("git's output cannot be parsed");
        Ok(git.line()?.parse().map_err(unreadable)?)
    }

    /// Returns how git tells in this form what differs from the work that was given, and the number
    /// of files that are not compared.
    fn compared(&self, form: &[&str]) -> Result<(Vec<u8>, u64), WorktreeError> {
        let directory = &self.registration.directory;
        let draft = DraftIndex::copy(&directory.join("index"), directory)?;
        let left_out = self.add_untracked(&draft)?;
        let given = self.worktree.carried.as_ref();
        let git = SETTINGS
            .iter()
            .fold(self.git().index(&draft.0), |git, setting| {
                git.words(["-c", setting])
            });
        let git = git.word("diff").words(FORM).words(form);
        let git = git.word(given.unwrap_or(&self.worktree.base)).word("--");
        Ok((git.first_bytes(MOST_BYTES)?, left_out))
    }

    /// Adds the files to an index that git does not know, each as an empty one: what is in them
    /// differs then. Returns the number of those that are too many, and not added.
    fn add_untracked(&self, draft: &DraftIndex) -> Result<u64, GitError> {
        let list = ["ls-files", "--others", "--exclude-standard", "-z"];
        let listed = self.git().index(&draft.0).words(list).run()?;
        let names = listed.split(|byte| *byte == 0);
        // A directory that is listed is another repository.
        let mut files = names.filter(|name| !name.is_empty() && !name.ends_with(b"/"));
        let empty = match self.worktree.base.len() {
            40 => EMPTY,
            _ => EMPTY_LONG,
        };
        let mut entries = Vec::new();
        for name in files.by_ref().take(MOST_UNTRACKED) {
            entries.extend_from_slice(format!("100644 {empty} 0\t").as_bytes());
            entries.extend_from_slice(name);
            entries.push(0);
        }
        let left_out = files.count() as u64;
        if entries.is_empty() {
            return Ok(left_out);
        }
        let add = ["update-index", "--replace", "-z", "--index-info"];
        let git = self.git().index(&draft.0).words(add);
        git.input(entries).run().map(|_| left_out)
    }
}
