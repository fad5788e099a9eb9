//! Where an agent works, and what it knows of the files there.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::store::SeenFile;

/// The directories an agent works in. All paths are absolute and resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Where relative paths begin and commands run. Lies beneath one of the roots.
    pub cwd: PathBuf,
    /// What file tools may reach.
    pub roots: Vec<PathBuf>,
    /// Where output goes that is too long to be told. File tools may read here. In a `Setup` it is the
    /// place of all sessions, of which each gets a directory of its own.
    pub spill: PathBuf,
    /// The user's home, for rules and paths that begin with `~/`.
    pub home: Option<PathBuf>,
    /// What it is a copy of, if it is a worktree: rules about that hold here too.
    pub mirror: Option<WorktreeMap>,
    /// Where the agent keeps notes of its own.
    pub notes: Option<AgentMemory>,
}

/// A checkout that stands in for others: what a rule says of a path of theirs it says of the same path here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeMap {
    /// The top directory of the worktree.
    pub here: PathBuf,
    /// The top directories of what it was made from, and of what that was made from; the nearest first.
    pub of: Vec<PathBuf>,
}

/// Notes that an agent keeps from one life to the next. It may write there whatever its mode is, but for
/// plan mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMemory {
    /// Where they are.
    pub directory: PathBuf,
    /// Whether it may edit nothing else.
    pub only: bool,
}

/// A worktree was to be made of a checkout in which the agent does not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cwd} is not inside the checkout {checkout}", cwd = .cwd.display(), checkout = .checkout.display())]
pub struct Elsewhere {
    /// Where it works.
    pub cwd: PathBuf,
    /// The checkout's top directory.
    pub checkout: PathBuf,
}

impl Workspace {
    /// What file tools may reach: the roots, and the agent's notes.
    pub fn reach(&self) -> impl Iterator<Item = &Path> {
        let notes = self.notes.iter().map(|notes| &notes.directory);
        self.roots.iter().chain(notes).map(PathBuf::as_path)
    }

    /// The workspace of an agent that is started from here to work in `cwd`. It is the same but for the
    /// notes, which are an agent's own.
    pub fn below(&self, cwd: PathBuf) -> Self {
        Self {
            cwd,
            notes: None,
            ..self.clone()
        }
    }

    /// The workspace of an agent that is started from here to work in the worktree `top`, a copy of the
    /// checkout `origin`: everything lies there as it does here, and what is not in the checkout is out of
    /// its reach.
    pub fn in_worktree(&self, top: &Path, origin: &Path) -> Result<Self, Elsewhere> {
        let elsewhere = |_| Elsewhere {
            cwd: self.cwd.clone(),
            checkout: origin.to_owned(),
        };
        let cwd = joined(top, self.cwd.strip_prefix(origin).map_err(elsewhere)?);
        let older = self
            .mirror
            .iter()
            .flat_map(|mirror| mirror.originals(origin));
        let of = std::iter::once(origin.to_owned()).chain(older).collect();
        let mirror = WorktreeMap {
            here: top.to_owned(),
            of,
        };
        let roots = mirror.reflected(&self.roots);
        Ok(Self {
            roots,
            mirror: Some(mirror),
            ..self.below(cwd)
        })
    }
}

impl WorktreeMap {
    /// Where a path of the worktree lies in what it was made from, the nearest first. Nowhere, if it is no
    /// path of the worktree.
    pub fn originals(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let inside = path.strip_prefix(&self.here).ok();
        inside
            .into_iter()
            .flat_map(|inside| self.of.iter().map(move |top| joined(top, inside)))
    }

    /// Roots of agents above as they lie in the worktree. What is not in the checkout is left out.
    pub fn reflected(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let mut reflected: Vec<PathBuf> = Vec::new();
        for root in roots.iter().filter_map(|root| self.reflect(root)) {
            // The checkout and a root that contains it both become the worktree itself.
            if !reflected.contains(&root) {
                reflected.push(root);
            }
        }
        reflected
    }

    fn reflect(&self, root: &Path) -> Option<PathBuf> {
        // First, since a worktree may lie within what it is a copy of.
        if root.starts_with(&self.here) {
            return Some(root.to_owned());
        }
        let inside = self.of.iter().find_map(|top| root.strip_prefix(top).ok());
        match inside {
            Some(inside) => Some(joined(&self.here, inside)),
            None => self
                .of
                .iter()
                .any(|top| top.starts_with(root))
                .then(|| self.here.clone()),
        }
    }
}

/// Joins without leaving a `/` at the end.
fn joined(top: &Path, inside: &Path) -> PathBuf {
    // `join` with an empty path would add a slash at the end.
    if inside.as_os_str().is_empty() {
        top.to_owned()
    } else {
        top.join(inside)
    }
}

/// The files whose content an agent knows, by resolved path. Clones share.
#[derive(Clone, Debug, Default)]
pub struct KnownFiles(Arc<Mutex<KnownState>>);

#[derive(Debug, Default)]
struct KnownState {
    /// What others know too.
    shared: Arc<HashMap<PathBuf, u64>>,
    versions: HashMap<PathBuf, u64>,
    /// What the store has not been told yet.
    fresh: Vec<SeenFile>,
}

impl KnownFiles {
    /// What a store remembers.
    pub fn remembered(files: Vec<SeenFile>) -> Self {
        let versions = files
            .into_iter()
            .map(|file| (file.path, file.version))
            .collect();
        Self(Arc::new(Mutex::new(KnownState {
            versions,
            ..KnownState::default()
        })))
    }

    /// The same files known to another, who will learn others: but for those of which the model was not told
    /// yet. What both know is kept once.
    pub fn fork(&self) -> Self {
        let shared = self.known(|known| {
            let untold: HashSet<&PathBuf> = known.fresh.iter().map(|file| &file.path).collect();
            if known.versions.keys().any(|path| !untold.contains(path)) {
                let told = known
                    .versions
                    .iter()
                    .filter(|(path, _)| !untold.contains(path));
                let all = known
                    .shared
                    .iter()
                    .chain(told)
                    .map(|(path, version)| (path.clone(), *version));
                known.shared = Arc::new(all.collect());
                let shared = Arc::clone(&known.shared);
                known
                    .versions
                    .retain(|path, version| shared.get(path) != Some(version));
            }
            Arc::clone(&known.shared)
        });
        Self(Arc::new(Mutex::new(KnownState {
            shared,
            ..KnownState::default()
        })))
    }

    /// All of them, by path.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.known(|known| {
            let own = known.versions.keys();
            own.chain(
                known
                    .shared
                    .keys()
                    .filter(|path| !known.versions.contains_key(*path)),
            )
            .cloned()
            .collect()
        });
        // The order of a hash map changes from process to process.
        paths.sort_unstable();
        paths
    }

    /// The version of the file that the agent knows.
    pub fn version(&self, path: &Path) -> Option<u64> {
        self.known(|known| {
            known
                .versions
                .get(path)
                .or_else(|| known.shared.get(path))
                .copied()
        })
    }

    /// The agent now knows this content.
    pub fn learn(&self, path: &Path, content: &[u8]) {
        let version = Self::version_of(content);
        self.known(|known| {
            let before = known
                .versions
                .get(path)
                .or_else(|| known.shared.get(path))
                .copied();
            if before != Some(version) {
                known.versions.insert(path.to_owned(), version);
                known.fresh.push(SeenFile {
                    path: path.to_owned(),
                    version,
                });
            }
        });
    }

    /// What a content's version is.
    pub fn version_of(content: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64(content)
    }

    /// What the store has not been told yet; the caller tells it.
    pub fn take_fresh(&self) -> Vec<SeenFile> {
        self.known(|known| std::mem::take(&mut known.fresh))
    }

    fn known<T>(&self, with: impl FnOnce(&mut KnownState) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(cwd: &str, roots: &[&str]) -> Workspace {
        Workspace {
            cwd: cwd.into(),
            roots: paths(roots),
            spill: "/spill".into(),
            home: Some("/h".into()),
            mirror: None,
            notes: Some(AgentMemory {
                directory: "/notes".into(),
                only: true,
            }),
        }
    }

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn everything_lies_in_a_worktree_as_in_its_checkout() {
        let table: [(&str, &[&str], &str, &[&str]); 5] = [
            ("/w", &["/w"], "/t", &["/t"]),
            (
                "/w/sub",
                &["/w", "/w/sub", "/extra"],
                "/t/sub",
                &["/t", "/t/sub"],
            ),
            (
                "/w/sub",
                &["/w/sub", "/w/other"],
                "/t/sub",
                &["/t/sub", "/t/other"],
            ),
            ("/w/sub", &["/"], "/t/sub", &["/t"]),
            ("/w", &["/w-evil", "/w"], "/t", &["/t"]),
        ];
        for (cwd, roots, there, expected) in table {
            let parent = workspace(cwd, roots);
            let given = parent
                .in_worktree(Path::new("/t"), Path::new("/w"))
                .unwrap();
            let mirror = WorktreeMap {
                here: "/t".into(),
                of: paths(&["/w"]),
            };
            let expected = Workspace {
                cwd: there.into(),
                roots: paths(expected),
                mirror: Some(mirror),
                notes: None,
                ..parent
            };
            assert_eq!(given, expected, "{roots:?}");
        }
    }

    #[test]
    fn worktrees_of_worktrees_know_all_they_are_copies_of() {
        let first = workspace("/w", &["/w"])
            .in_worktree(Path::new("/t"), Path::new("/w"))
            .unwrap();
        let second = first.in_worktree(Path::new("/u"), Path::new("/t")).unwrap();
        assert_eq!(
            second.mirror,
            Some(WorktreeMap {
                here: "/u".into(),
                of: paths(&["/t", "/w"])
            })
        );
        assert_eq!((second.cwd, second.roots), ("/u".into(), paths(&["/u"])));
        // A repository within the worktree.
        let inner = first
            .below("/t/lib/x".into())
            .in_worktree(Path::new("/u"), Path::new("/t/lib"))
            .unwrap();
        assert_eq!(
            inner.mirror,
            Some(WorktreeMap {
                here: "/u".into(),
                of: paths(&["/t/lib", "/w/lib"])
            })
        );
        assert_eq!((inner.cwd, inner.roots), ("/u/x".into(), paths(&["/u"])));
    }

    #[test]
    fn a_worktree_within_its_checkout() {
        let home = workspace("/h", &["/h"]);
        let top = Path::new("/h/.posse/worktrees/h-1/a");
        let first = home.in_worktree(top, Path::new("/h")).unwrap();
        assert_eq!(first.roots, [top]);
        let mirror = first.mirror.unwrap();
        assert_eq!(
            mirror.reflected(&first.roots),
            [top],
            "what lies here stays"
        );
    }

    #[test]
    fn who_works_elsewhere_gets_no_worktree() {
        let wrong = workspace("/other", &["/other"]).in_worktree(Path::new("/t"), Path::new("/w"));
        assert_eq!(
            wrong.unwrap_err().to_string(),
            "/other is not inside the checkout /w"
        );
    }
}
