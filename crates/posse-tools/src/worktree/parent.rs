//! The checkout that a worktree is made from: what it is, and what is not committed in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use posse_port::worktree::Base;

use crate::git::{Git, GitError, GitHold};

use super::status::{self, ChangeKind, Status, StatusEntry};
use super::words::{count, name, names};

/// What leads to the remote's default branch.
const REMOTE: &str = "refs/remotes/origin/HEAD";

/// A checkout.
#[derive(Debug)]
pub(super) struct Parent {
    /// Its top directory.
    pub(super) top: PathBuf,
    /// The git directory that all checkouts of the repository share.
    pub(super) common: PathBuf,
    /// The commit it is at.
    pub(super) head: String,
    /// The commit that a worktree begins with, and the branch it is from, if it is from one.
    pub(super) base: String,
    pub(super) branch: Option<String>,
    /// What holds the programs that it has git run.
    pub(super) hold: GitHold,
}

impl Parent {
    /// Asks git about the checkout around `from`.
    pub(super) fn ask(from: &Path, base: Base, hold: &GitHold) -> Result<Self, ParentError> {
        if !from.is_dir() {
            return Err(ParentError::Missing {
                directory: from.to_owned(),
            });
        }
        // One call for everything: each is a process, and many worktrees may be made at once.
        let git = Git::look(from).words([
            "rev-parse",
            "--is-bare-repository",
            "--path-format=absolute",
        ]);
        let git = git.words(["--git-common-dir", "--show-toplevel", "HEAD"]);
        let git = match base {
            Base::Head => git.words(["--abbrev-ref", "HEAD"]),
            Base::Fresh => git
                .word(format!("{REMOTE}^{{commit}}"))
                .words(["--abbrev-ref", REMOTE]),
        };
        let odd_path = || ParentError::OddPath {
            directory: from.to_owned(),
        };
        let (printed, refused) = match git.run() {
            Ok(printed) => (printed, None),
            Err(GitError::Refused { printed, said }) => (printed, Some(said)),
            Err(failed) => return Err(ParentError::Git(failed)),
        };
        let printed = String::from_utf8(printed).map_err(|_| odd_path())?;
        let lines: Vec<&str> = printed.lines().collect();
        if let Some(said) = refused {
            return Err(refusal(from, base, &lines, said));
        }
        let (common, top, head, base, branch) = match lines[..] {
            [_, common, top, head, branch] => (common, top, head, head, branch),
            [_, common, top, head, base, branch] => (common, top, head, base, branch),
            _ => return Err(odd_path()),
        };
        let whole = |path: &str| Path::new(path).canonicalize().map_err(|_| odd_path());
        Ok(Self {
            top: whole(top)?,
            common: whole(common)?,
            head: head.to_owned(),
            base: base.to_owned(),
            branch: (branch != "HEAD").then(|| branch.to_owned()),
            hold: hold.clone(),
        })
    }

    /// Returns what is not committed in it, apart from what is ignored; every file by itself.
    pub(super) fn each_change(&self) -> Result<Status, GitError> {
        self.status("--untracked-files=all")
    }

    fn status(&self, untracked: &str) -> Result<Status, GitError> {
        let git = Git::look_at_files(&self.top, &self.hold).words([
            "status",
            "--porcelain=v2",
            "-z",
            "--no-renames",
            untracked,
        ]);
        let printed = git.word("--ignore-submodules=none").run()?;
        status::parse(&printed)
            .ok_or_else(|| GitError::Io(std::io::Error::other("git's output cannot be parsed")))
    }
}

/// Why no worktree can be made from a checkout.
#[derive(Debug, thiserror::Error)]
pub enum ParentError {
    /// There is no such directory.
    #[error("the directory {} does not exist, so no worktree can be made", name(.directory))]
    Missing {
        /// Where the parent works.
        directory: PathBuf,
    },
    /// Git did not answer.
    #[error("no worktree can be made: {0}. {advice}, or omit isolation", advice = advice(.0))]
    Git(#[source] GitError),
    /// Git does not print the path as it is.
    #[error(
        "no worktree can be made of {}: its path has characters that git does not tell",
        name(.directory)
    )]
    OddPath {
        /// Where the parent works.
        directory: PathBuf,
    },
    /// It is not in a repository.
    #[error(
        "{} is not in a git repository, so no worktree can be made. Omit isolation, or run \
         `git init` there and make a first commit",
        name(.directory)
    )]
    NoRepository {
        /// Where the parent works.
        directory: PathBuf,
    },
    /// The repository has no checkout.
    #[error(
        "{} is in a bare repository, which has no checkout that a worktree could be made from. \
         Work in a checkout of it, or omit isolation",
        name(.directory)
    )]
    Bare {
        /// Where the parent works.
        directory: PathBuf,
    },
    /// It is a git directory, or lies in one.
    #[error(
        "{} is inside a git directory, not a checkout. Work in the checkout, or omit \
         isolation",
        name(.directory)
    )]
    NotACheckout {
        /// Where the parent works.
        directory: PathBuf,
    },
    /// Nothing is committed.
    #[error(
        "the repository of {} has no commit yet, so there is nothing that a worktree could begin \
         with. Make a first commit, or omit isolation",
        name(.directory)
    )]
    NoCommit {
        /// Where the parent works.
        directory: PathBuf,
    },
    /// The remote's default branch is not known.
    #[error(
        "a fresh worktree begins with the remote's default branch, and {REMOTE} does not say which that \
         is. Fetch, and run `git remote set-head origin --auto`; or begin with the parent's HEAD"
    )]
    NoRemoteDefault,
    /// Git refused for another reason.
    #[error(
        "no worktree can be made of {}: git said: {said}. Fix that, or omit isolation",
        name(.directory)
    )]
    Refused {
        /// Where the parent works.
        directory: PathBuf,
        /// Why, in git's own words.
        said: String,
    },
}

fn advice(error: &GitError) -> &'static str {
    match error {
        GitError::Missing => "Install git",
        _ => "Try again",
    }
}

/// Returns why git did not answer everything: how far it came tells.
fn refusal(from: &Path, base: Base, lines: &[&str], said: String) -> ParentError {
    let directory = from.to_owned();
    match lines {
        [] if said.contains("not a git repository") => ParentError::NoRepository { directory },
        // A git older than 2.38 answers; a newer one refuses such a directory.
        ["true", ..] => ParentError::Bare { directory },
        [] if said.contains("cannot use bare repository") => ParentError::Bare { directory },
        ["false", _] => ParentError::NotACheckout { directory },
        ["false", _, _] | ["false", _, _, "HEAD"] => ParentError::NoCommit { directory },
        ["false", _, _, _, ..] if base == Base::Fresh => ParentError::NoRemoteDefault,
        _ => ParentError::Refused { directory, said },
    }
}

/// Looks at parents, shared by those who ask at the same moment: a look that begins after they have
/// asked serves them all.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<HashMap<PathBuf, SharedLook>>);

type SharedLook = Arc<Mutex<Option<(Instant, Option<String>)>>>;

impl Looks {
    /// Returns what is not committed in a parent, in words.
    pub(super) fn uncommitted(&self, parent: &Parent) -> Option<String> {
        let asked = Instant::now();
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let look = Arc::clone(looks.entry(parent.top.clone()).or_default());
        drop(looks);
        let mut look = look.lock().unwrap_or_else(PoisonError::into_inner);
        match &*look {
            Some((begun, told)) if *begun >= asked => told.clone(),
            _ => {
                let begun = Instant::now();
                let told = match parent.status("--untracked-files=normal") {
                    Ok(status) => uncommitted(&status.entries.iter().collect::<Vec<_>>()),
                    Err(failed) => Some(format!("unknown: it could not be checked ({failed})")),
                };
                *look = Some((begun, told.clone()));
                told
            }
        }
    }
}

/// Entries of a checkout in words.
pub(super) fn uncommitted(entries: &[&StatusEntry]) -> Option<String> {
    let of = |new: bool| {
        entries
            .iter()
            .filter(move |entry| (entry.kind == ChangeKind::New) == new)
    };
    let paths = |new: bool| of(new).map(|entry| &entry.path).collect::<Vec<_>>();
    let told = |paths: Vec<_>, noun: &str| {
        (!paths.is_empty()).then(|| format!("{}: {}", count(paths.len(), noun), names(&paths)))
    };
    let told: Vec<String> = [
        told(paths(false), "changed file"),
        told(paths(true), "new file"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!told.is_empty()).then(|| told.join("; "))
}
