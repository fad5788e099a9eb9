//! The checkout that a worktree is made from: what it is, and what is not committed in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use posse_port::worktree::Base;

use crate::git::{Failed, Git};

use super::status::{self, Entry, Kind, Status};
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
}

impl Parent {
    /// Asks git about the checkout around `from`.
    pub(super) fn ask(from: &Path, base: Base) -> Result<Self, String> {
        if !from.is_dir() {
            return Err(format!(
                "there is no directory {}, so no worktree can be made of it",
                name(from)
            ));
        }
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
        let (printed, refused) = match git.run() {
            Ok(printed) => (printed, None),
            Err(Failed::Refused { printed, said }) => (printed, Some(said)),
            Err(failed) => return Err(without_git(&failed)),
        };
        let printed = String::from_utf8(printed).map_err(|_| odd_path(from))?;
        let lines: Vec<&str> = printed.lines().collect();
        if let Some(said) = refused {
            return Err(refusal(from, base, &lines, &said));
        }
        let (common, top, head, base, branch) = match lines[..] {
            [_, common, top, head, branch] => (common, top, head, head, branch),
            [_, common, top, head, base, branch] => (common, top, head, base, branch),
            _ => return Err(odd_path(from)),
        };
        let whole = |path: &str| Path::new(path).canonicalize().map_err(|_| odd_path(from));
        Ok(Self {
            top: whole(top)?,
            common: whole(common)?,
            head: head.to_owned(),
            base: base.to_owned(),
            branch: (branch != "HEAD").then(|| branch.to_owned()),
        })
    }

    /// What is not committed in it, apart from what is ignored; every file by itself.
    pub(super) fn each_change(&self) -> Result<Status, Failed> {
        self.status("--untracked-files=all")
    }

    fn status(&self, untracked: &str) -> Result<Status, Failed> {
        let git = Git::look(&self.top).words([
            "status",
            "--porcelain=v2",
            "-z",
            "--no-renames",
            untracked,
        ]);
        let printed = git.word("--ignore-submodules=none").run()?;
        status::parse(&printed)
            .ok_or_else(|| Failed::Io(std::io::Error::other("git's answer cannot be read")))
    }
}

/// Why git would not say all: how far it came tells.
fn refusal(from: &Path, base: Base, lines: &[&str], said: &str) -> String {
    let from = name(from);
    let leave_out = "or leave isolation out";
    match lines {
        [] if said.contains("not a git repository") => format!(
            "{from} is not in a git repository, so no worktree can be made. Leave isolation out; or run \
             `git init` there and make a first commit"
        ),
        ["true", ..] => format!(
            "{from} is in a bare repository, which has no checkout that a worktree could be made from. \
             Work in a checkout of it, {leave_out}"
        ),
        ["false", _] => format!(
            "{from} is inside of a git directory, not of a checkout. Work in the checkout, {leave_out}"
        ),
        ["false", _, _] | ["false", _, _, "HEAD"] => format!(
            "the repository of {from} has no commit yet, so there is nothing that a worktree could begin \
             with. Make a first commit, {leave_out}"
        ),
        ["false", _, _, _, ..] if base == Base::Fresh => format!(
            "a fresh worktree begins with the remote's default branch, and {REMOTE} does not say which that \
             is. Fetch, and run `git remote set-head origin --auto`; or begin with the parent's HEAD"
        ),
        _ => format!(
            "no worktree can be made of {from}: git said: {said}. Put that right, {leave_out}"
        ),
    }
}

fn without_git(failed: &Failed) -> String {
    match failed {
        Failed::Missing => {
            format!("no worktree can be made: {failed}. Install git, or leave isolation out")
        }
        _ => format!("no worktree can be made: {failed}. Try again, or leave isolation out"),
    }
}

fn odd_path(from: &Path) -> String {
    format!(
        "no worktree can be made of {}: its path has characters that git does not tell",
        name(from)
    )
}

/// Looks at parents, shared by those who ask at the same moment: a look that begins after they have asked
/// serves them all.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<HashMap<PathBuf, Look>>);

type Look = Arc<Mutex<Option<(Instant, Option<String>)>>>;

impl Looks {
    /// What is not committed in a parent, in words.
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
                    Err(failed) => Some(format!(
                        "something, perhaps: it could not be looked at ({failed})"
                    )),
                };
                *look = Some((begun, told.clone()));
                told
            }
        }
    }
}

/// Entries of a checkout in words.
pub(super) fn uncommitted(entries: &[&Entry]) -> Option<String> {
    let of = |new: bool| {
        entries
            .iter()
            .filter(move |entry| (entry.kind == Kind::New) == new)
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
