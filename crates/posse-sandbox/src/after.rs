//! The check after a command: what no mount can hold, since it did not exist when the command
//! began. It is moved away before anybody's tools find it.

mod deep;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, openat, openat2, readlinkat, renameat, statat,
};
use rustix::io::Errno;

use crate::git_index::gitlinks;
use crate::layout::Repository;
pub use deep::{DeepWatch, KnownTree};

/// Entries of a git directory that decide what git runs.
const OF_GIT: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "gitdir"];
/// What makes any directory a repository.
const BARE: [&str; 4] = ["HEAD", "config", "objects", "refs"];
/// What is added to a name that cannot be moved to another file system.
const ASIDE: &str = ".posse-quarantine";

/// What an entry was before.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Absent,
    Link(OsString),
    Present,
}

/// What is compared to tell whether a file has changed.
type FileMark = (u64, i64, i64, i64);

/// What was there before a command.
#[derive(Debug)]
pub struct Watch {
    /// Directories, the entries that are watched in each, and what they were.
    entries: Vec<(PathBuf, &'static str, Entry)>,
    /// Checkouts, with the state of their index and the repositories that it named.
    indexes: Vec<(Repository, Option<FileMark>, BTreeSet<Vec<u8>>)>,
    /// Directories that were no repositories.
    plain: Vec<PathBuf>,
    deep: Option<DeepWatch>,
}

/// An entry that has appeared: its directory, opened and as a path, and its name.
type FoundEntry = (OwnedFd, PathBuf, OsString);

/// Something that a command made and that must not stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where it was.
    pub path: PathBuf,
    /// Where it is now; none if it could not be moved away.
    pub moved_to: Option<PathBuf>,
}

impl Watch {
    /// Looks at what is there. `directories` are the roots and the working directory, `names` what
    /// must not appear in them.
    pub fn before(
        directories: &[PathBuf],
        repositories: &[Repository],
        names: &[&'static str],
    ) -> Self {
        let mut entries = Vec::new();
        let of_roots = directories.iter().map(|directory| (directory, names));
        let of_git = repositories.iter().map(|it| (&it.git, &OF_GIT[..]));
        for (directory, names) in of_roots.chain(of_git) {
            let opened = open(directory);
            for name in names {
                let entry = opened.as_ref().map_or(Entry::Absent, |it| look(it, name));
                entries.push((directory.clone(), *name, entry));
            }
        }
        let indexes = repositories.iter().map(|repository| {
            let mark = mark_of(&repository.git.join("index"));
            (repository.clone(), mark, links_in(repository))
        });
        Self {
            entries,
            indexes: indexes.collect(),
            plain: directories
                .iter()
                .filter(|directory| !is_repository(directory))
                .cloned()
                .collect(),
            deep: None,
        }
    }

    /// Looks at all directories afterwards that the command has changed, too.
    pub fn deep(self, deep: DeepWatch) -> Self {
        let deep = Some(deep);
        Self { deep, ..self }
    }

    /// Moves what has appeared to the directory `quarantine`, and tells what that was.
    pub fn after(&self, quarantine: &Path) -> Vec<Finding> {
        let mut found = Vec::new();
        for (directory, name, before) in &self.entries {
            let Some(opened) = open(directory) else {
                continue;
            };
            let now = look(&opened, name);
            let appeared = match (before, &now) {
                (Entry::Absent, now) => *now != Entry::Absent,
                (Entry::Link(_), now) => now != before && *now != Entry::Absent,
                // Mounts have held it.
                (Entry::Present, _) => false,
            };
            if appeared {
                found.push((opened, directory.clone(), (*name).into()));
            }
        }
        for directory in self.plain.iter().filter(|it| is_repository(it)) {
            for name in BARE {
                if let Some(opened) = open(directory) {
                    found.push((opened, directory.clone(), name.into()));
                }
            }
        }
        for (repository, before, known) in &self.indexes {
            if mark_of(&repository.git.join("index")) != *before {
                found.extend(planted(repository, known));
            }
        }
        found.extend(self.deep.iter().flat_map(DeepWatch::appeared));
        let mut moved = Vec::new();
        for (opened, directory, name) in found {
            moved.extend(move_away(&opened, &directory, &name, quarantine));
        }
        moved
    }
}

/// Returns the repositories that the index of a checkout names.
fn links_in(repository: &Repository) -> BTreeSet<Vec<u8>> {
    let index = fs::read(repository.git.join("index")).unwrap_or_default();
    // An index that cannot be read is none for git, either.
    gitlinks(&index).unwrap_or_default().into_iter().collect()
}

/// Returns the repositories that the index names now and did not before: git looks into them.
fn planted(repository: &Repository, known: &BTreeSet<Vec<u8>>) -> Vec<FoundEntry> {
    let now = links_in(repository);
    let new = now.difference(known);
    let opened = new.filter_map(|link| {
        let link = Path::new(OsStr::from_bytes(link));
        let directory = open_beneath(&repository.top, link)?;
        let is_there = look(&directory, ".git") != Entry::Absent;
        is_there.then(|| (directory, repository.top.join(link), ".git".into()))
    });
    opened.collect()
}

fn open(directory: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, directory, flags, Mode::empty()).ok()
}

/// Opens a directory beneath another without following any link: a command could have made one
/// that leads elsewhere.
fn open_beneath(top: &Path, inner: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(open(top)?, inner, flags, Mode::empty(), resolve).ok()
}

fn look(directory: &OwnedFd, name: &str) -> Entry {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(_) => Entry::Absent,
        Ok(stat) if is_link(&stat) => {
            let target = readlinkat(directory, name, Vec::new()).unwrap_or_default();
            Entry::Link(OsStr::from_bytes(target.to_bytes()).to_owned())
        }
        Ok(_) => Entry::Present,
    }
}

fn is_link(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink
}

/// Returns true if git takes the directory for a repository without `.git`.
fn is_repository(directory: &Path) -> bool {
    let Some(directory) = open(directory) else {
        return false;
    };
    let mut needed = ["HEAD", "objects", "refs"].into_iter();
    needed.all(|name| look(&directory, name) != Entry::Absent)
}

fn mark_of(file: &Path) -> Option<FileMark> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::symlink_metadata(file).ok()?;
    let size = i64::try_from(metadata.size()).unwrap_or(i64::MAX);
    let mark = (
        metadata.ino(),
        size,
        metadata.mtime(),
        metadata.mtime_nsec(),
    );
    Some(mark)
}

/// Moves an entry away. Returns none if it is gone.
fn move_away(directory: &OwnedFd, path: &Path, name: &OsStr, quarantine: &Path) -> Option<Finding> {
    let path = path.join(name);
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    statat(directory, name, flags).ok()?;
    let _ = fs::create_dir_all(quarantine);
    let numbered = (1..).map(|number: u32| {
        let mut numbered = OsString::from(number.to_string());
        numbered.push("-");
        numbered.push(name);
        quarantine.join(numbered)
    });
    let mut free = numbered.filter(|path| fs::symlink_metadata(path).is_err());
    let target = free.next()?;
    let moved_to = match renameat(directory, name, CWD, &target) {
        Ok(()) => Some(target),
        Err(Errno::NOENT) => return None,
        // Another file system: a name that nothing reads must do.
        Err(_) => {
            let mut aside = name.to_owned();
            aside.push(ASIDE);
            let renamed = renameat(directory, name, directory, &aside);
            renamed.ok().map(|()| path.with_file_name(aside))
        }
    };
    Some(Finding { path, moved_to })
}

#[cfg(test)]
mod tests;
