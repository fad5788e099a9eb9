//! Where git keeps what: read as files, since git itself runs programs that its settings name.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Files of a git directory that decide what git runs.
const DECIDING: [&str; 6] = [
    "hooks",
    "config",
    "config.worktree",
    "info",
    "commondir",
    "gitdir",
];
/// What a commit in a linked worktree writes to the directory that it shares with others.
const SHARED: [&str; 3] = ["objects", "refs", "logs"];
/// Directories of packages that others have written: many hold guarded files, and nobody works
/// there.
const PACKAGES: [&str; 3] = ["node_modules", "site-packages", "vendor"];
/// A longer file is not one of git's pointers or settings.
const LONGEST: u64 = 1 << 20;

/// The git directories of a checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    /// The directory with `.git` in it.
    pub top: PathBuf,
    /// The directory that holds its index and HEAD.
    pub git: PathBuf,
    /// Paths outside the checkout that a commit in it writes to.
    pub write: Vec<PathBuf>,
    /// Existing paths that must stay as they are: they decide what git runs.
    pub keep: Vec<PathBuf>,
}

impl Repository {
    /// Returns the repository of the checkout whose top directory is `top`, if it is one.
    pub fn at(top: &Path) -> Option<Self> {
        let entry = top.join(".git");
        let metadata = fs::symlink_metadata(&entry).ok()?;
        let mut found = Self {
            top: top.to_owned(),
            ..Self::default()
        };
        if metadata.is_dir() {
            found.git = entry.clone();
        } else {
            let git = pointer(&entry)?;
            found.keep.push(entry.clone());
            found.git = git;
        }
        match shared_by(&found.git) {
            // Another repository's directory could be named there. Its own record of the checkout
            // cannot be made from here.
            Some(common) if is_record(&found.git, &common) && points_back(&found.git, &entry) => {
                found.write.push(found.git.clone());
                let shared = present(&common, &SHARED);
                found
                    .write
                    .extend(shared.into_iter().filter(|it| is_directory(it)));
                found.keep.extend(present(&common, &DECIDING));
                found.keep_hooks(&common);
            }
            _ => found.keep_modules(),
        }
        found.keep.extend(present(&found.git, &DECIDING));
        found.keep_hooks(&found.git.clone());
        found.keep.sort();
        found.keep.dedup();
        Some(found)
    }

    /// Keeps settings of submodules and the records of linked worktrees, which are others'.
    fn keep_modules(&mut self) {
        for module in children(&self.git.join("modules")) {
            self.keep.extend(present(&module, &DECIDING));
        }
        self.keep.extend(children(&self.git.join("worktrees")));
    }

    /// Keeps the directory of hooks that the settings name.
    fn keep_hooks(&mut self, settings: &Path) {
        for file in ["config", "config.worktree"] {
            let text = small_file(&settings.join(file)).unwrap_or_default();
            for hooks in hooks_paths(&text) {
                let path = plain(&self.top.join(hooks));
                if fs::symlink_metadata(&path).is_ok() {
                    self.keep.push(path);
                }
            }
        }
    }
}

/// Returns the directory that a `.git` file names.
pub(crate) fn pointer(file: &Path) -> Option<PathBuf> {
    let text = small_file(file)?;
    let named = text.strip_prefix(b"gitdir:")?.trim_ascii();
    fs::canonicalize(file.parent()?.join(OsStr::from_bytes(named))).ok()
}

/// Returns the directory that a linked worktree shares with others.
fn shared_by(git: &Path) -> Option<PathBuf> {
    let named = small_file(&git.join("commondir"))?;
    fs::canonicalize(git.join(OsStr::from_bytes(named.trim_ascii()))).ok()
}

/// Returns true if a git directory is a record of a linked worktree where git keeps those.
fn is_record(git: &Path, common: &Path) -> bool {
    git.parent() == Some(&common.join("worktrees"))
}

/// Returns true for a directory that is no link: a link could lead anywhere.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}

/// Returns true if the directory of a linked worktree is that of the checkout with this entry.
fn points_back(git: &Path, entry: &Path) -> bool {
    let Some(named) = small_file(&git.join("gitdir")) else {
        return false;
    };
    let named = git.join(OsStr::from_bytes(named.trim_ascii()));
    let resolved = |path: &Path| fs::canonicalize(path).ok();
    resolved(&named).is_some_and(|named| Some(named) == resolved(entry))
}

fn present(directory: &Path, names: &[&str]) -> Vec<PathBuf> {
    let paths = names.iter().map(|name| directory.join(name));
    paths
        .filter(|path| fs::symlink_metadata(path).is_ok())
        .collect()
}

pub(crate) fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

pub(crate) fn small_file(path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::symlink_metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= LONGEST).then(|| fs::read(path).ok())?
}

/// Returns a path without `.` and `..`, by its text.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the values of `core.hooksPath` in a settings file of git.
fn hooks_paths(settings: &[u8]) -> Vec<PathBuf> {
    let settings = String::from_utf8_lossy(settings);
    let mut in_core = false;
    let mut found = Vec::new();
    for line in settings.lines() {
        let mut line = line.trim();
        if let Some((header, rest)) = line.strip_prefix('[').and_then(|it| it.split_once(']')) {
            in_core = header.trim().eq_ignore_ascii_case("core");
            line = rest.trim();
        }
        let value = line.split_once('=').filter(|(key, _)| {
            let key = key.trim();
            in_core && key.eq_ignore_ascii_case("hooksPath")
        });
        if let Some((_, value)) = value {
            found.push(PathBuf::from(value.trim().trim_matches('"')));
        }
    }
    found
}

/// Returns true if nothing is remembered of what is beneath a directory of this name.
pub(crate) fn is_of_packages(name: &OsStr) -> bool {
    PACKAGES.iter().any(|packages| name == *packages)
}

/// What a walk through a workspace found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Entries that were looked for.
    pub named: Vec<PathBuf>,
    /// Top directories of checkouts beneath the root, without the root itself.
    pub repositories: Vec<PathBuf>,
    /// Directories that could not be looked into.
    pub unreadable: Vec<PathBuf>,
    /// The others, but for those of packages.
    pub directories: Vec<PathBuf>,
    /// False if there were more entries than the walk was to look at.
    pub complete: bool,
}

impl Survey {
    /// Walks through `root` without following links, looks at no more than `most` entries, and does
    /// not look into those that are wanted.
    pub fn of(root: &Path, most: usize, is_wanted: impl Fn(&Path) -> bool) -> Self {
        let mut found = Self {
            complete: true,
            ..Self::default()
        };
        let mut looked_at = 0;
        let mut waiting = vec![root.to_owned()];
        while let Some(directory) = waiting.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    if error.kind() != std::io::ErrorKind::NotFound {
                        found.unreadable.push(directory);
                    }
                    continue;
                }
            };
            for entry in entries.flatten() {
                looked_at += 1;
                if looked_at > most {
                    found.complete = false;
                    return found;
                }
                let path = entry.path();
                if entry.file_name() == ".git" {
                    if directory != root {
                        found.repositories.push(directory.clone());
                    }
                } else if is_wanted(&path) {
                    found.named.push(path);
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(path);
                }
            }
            found.directories.push(directory);
        }
        found.directories.retain(|path| {
            let inner = path.strip_prefix(root).unwrap_or(path);
            !inner.iter().any(is_of_packages)
        });
        found.named.sort();
        found.repositories.sort();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes files and directories; a name that ends with `/` is a directory.
    fn make(root: &Path, entries: &[(&str, &str)]) {
        for (name, text) in entries {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if name.ends_with('/') {
                fs::create_dir_all(&path).unwrap();
            } else {
                fs::write(&path, text).unwrap();
            }
        }
    }

    fn below(root: &Path, paths: &[PathBuf]) -> Vec<String> {
        let names = paths.iter().map(|path| path.strip_prefix(root).unwrap());
        let mut names: Vec<_> = names.map(|name| name.display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_checkout_keeps_what_decides_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        make(
            &root,
            &[
                (".git/hooks/", ""),
                (".git/info/", ""),
                (".git/objects/", ""),
                (".git/modules/lib/config", ""),
                (".git/worktrees/other/gitdir", "/elsewhere/.git"),
                (
                    ".git/config",
                    "[core]\n\tbare = false\n\thooksPath = \"./.husky\"\n[x] hooksPath = no\n",
                ),
                (".husky/pre-commit", ""),
            ],
        );
        let found = Repository::at(&root).unwrap();
        assert_eq!(found.write, Vec::<PathBuf>::new());
        assert_eq!(
            below(&root, &found.keep),
            [
                ".git/config",
                ".git/hooks",
                ".git/info",
                ".git/modules/lib/config",
                ".git/worktrees/other",
                ".husky",
            ]
        );
        assert_eq!(Repository::at(&root.join(".husky")), None);
    }

    #[test]
    fn a_linked_worktree_may_commit_and_a_forged_one_may_not() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let main = "main/.git";
        let record = format!("{main}/worktrees/wt");
        let pointer = format!("gitdir: {}\n", root.join(&record).display());
        let back = format!("{}\n", root.join("wt/.git").display());
        make(
            &root,
            &[
                ("main/.git/hooks/", ""),
                ("main/.git/config", "[core]\nbare=false\n"),
                ("main/.git/objects/", ""),
                ("main/.git/refs/", ""),
                (&format!("{record}/commondir"), "../..\n"),
                (&format!("{record}/gitdir"), &back),
                ("wt/.git", &pointer),
                ("forged/.git", &pointer),
            ],
        );
        let found = Repository::at(&root.join("wt")).unwrap();
        assert_eq!(
            below(&root, &found.write),
            [
                "main/.git/objects",
                "main/.git/refs",
                "main/.git/worktrees/wt"
            ]
        );
        assert_eq!(
            below(&root, &found.keep),
            [
                "main/.git/config",
                "main/.git/hooks",
                "main/.git/worktrees/wt/commondir",
                "main/.git/worktrees/wt/gitdir",
                "wt/.git",
            ]
        );
        let forged = Repository::at(&root.join("forged")).unwrap();
        assert_eq!(forged.write, Vec::<PathBuf>::new());
    }

    #[test]
    fn a_walk_finds_names_and_repositories_and_has_an_end() {
        let root = tempfile::tempdir().unwrap();
        make(
            root.path(),
            &[
                (".git/config", ""),
                ("a/b/.envrc", ""),
                ("a/nested/.git/config", ""),
                ("c/.claude/x", ""),
            ],
        );
        let is_wanted = |path: &Path| path.ends_with(".envrc") || path.ends_with(".claude");
        let found = Survey::of(root.path(), 100, is_wanted);
        assert_eq!(
            below(root.path(), &found.named),
            ["a/b/.envrc", "c/.claude"]
        );
        assert_eq!(below(root.path(), &found.repositories), ["a/nested"]);
        assert!(found.complete);
        assert!(!Survey::of(root.path(), 3, |_| false).complete);
    }
}
