//! The directories an agent works in, and the files whose content it knows.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::store::SeenFile;

/// The directories an agent works in. All paths are absolute and resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Base of relative paths and working directory of commands. Lies beneath one of the roots.
    pub cwd: PathBuf,
    /// Directories that file tools may access.
    pub roots: Vec<PathBuf>,
    /// Directory for output too long for the model. File tools may read it. In a `Setup` it is the
    /// parent of one directory per session.
    pub spill: PathBuf,
    /// The user's home, for rules and paths starting with `~/`.
    pub home: Option<PathBuf>,
    /// The original checkouts, if it is a worktree: rules about them also apply here.
    pub mirror: Option<WorktreeMap>,
    /// Directory of the agent's own notes.
    pub notes: Option<AgentMemory>,
}

/// Maps a worktree to the checkouts it copies: a rule about a path there also applies to the same
/// path here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeMap {
    /// The top directory of the worktree.
    pub here: PathBuf,
    /// The top directories of the checkout it was made from, and of that one's origins; nearest
    /// first.
    pub of: Vec<PathBuf>,
}

/// Notes that an agent keeps across its lives. It may write them in any mode except plan mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMemory {
    /// Their directory.
    pub directory: PathBuf,
    /// True if the agent may edit nothing else.
    pub only: bool,
}

/// The agent does not work in the checkout that a worktree was requested of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cwd} is not inside the checkout {checkout}", cwd = .cwd.display(), checkout = .checkout.display())]
pub struct Elsewhere {
    /// The agent's working directory.
    pub cwd: PathBuf,
    /// The checkout's top directory.
    pub checkout: PathBuf,
}

/// The file in a hook's directory in which it sets variables.
pub const VARIABLES: &str = "set.sh";

impl Workspace {
    /// A workspace of one directory, and the one for long output. Both must be absolute and
    /// resolved.
    pub fn new(cwd: PathBuf, spill: PathBuf) -> Self {
        Self {
            roots: vec![cwd.clone()],
            cwd,
            spill,
            home: None,
            mirror: None,
            notes: None,
        }
    }

    /// Returns the directories that file tools may access: the roots, and the agent's notes.
    pub fn reach(&self) -> impl Iterator<Item = &Path> {
        let notes = self.notes.iter().map(|notes| &notes.directory);
        self.roots.iter().chain(notes).map(PathBuf::as_path)
    }

    /// Returns the directory with the variables that hooks set for the commands of the session: in
    /// [`VARIABLES`] in a directory for each. No command can write there.
    pub fn variables(&self) -> PathBuf {
        self.spill.join("variables")
    }

    /// Returns the one for hooks of the repository, whose variables hold only where something holds
    /// the commands.
    pub fn repository_variables(&self) -> PathBuf {
        self.spill.join("repository-variables")
    }

    /// Returns the workspace of an agent started from here to work in `cwd`: the same without the
    /// notes, which belong to one agent.
    pub fn below(&self, cwd: PathBuf) -> Self {
        Self {
            cwd,
            notes: None,
            ..self.clone()
        }
    }

    /// Returns the workspace of an agent started from here to work in the worktree `top`, a copy of
    /// the checkout `origin`. Paths keep their place in the checkout; paths outside it become
    /// inaccessible.
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
    /// Returns the paths in the original checkouts that a worktree path corresponds to, nearest
    /// first; none for a path outside the worktree.
    pub fn originals(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let inside = path.strip_prefix(&self.here).ok();
        inside
            .into_iter()
            .flat_map(|inside| self.of.iter().map(move |top| joined(top, inside)))
    }

    /// Maps roots of parent agents into the worktree. Roots outside the checkout are left out.
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
        // Checked first, since a worktree may lie within its original.
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

/// Joins without a trailing `/`.
fn joined(top: &Path, inside: &Path) -> PathBuf {
    // `join` with an empty path would add a trailing slash.
    if inside.as_os_str().is_empty() {
        top.to_owned()
    } else {
        top.join(inside)
    }
}

/// The files whose content an agent knows, by resolved path. Clones share state.
#[derive(Clone, Debug, Default)]
pub struct KnownFiles(Arc<Mutex<KnownState>>);

#[derive(Debug, Default)]
struct KnownState {
    /// Versions shared with forks.
    shared: Arc<HashMap<PathBuf, u64>>,
    versions: HashMap<PathBuf, u64>,
    /// Not stored yet.
    fresh: Vec<SeenFile>,
}

impl KnownFiles {
    /// Restores the files that a store has.
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

    /// Creates a copy for another agent, without the files that the model was not told of yet.
    /// Common entries are shared in memory.
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

    /// All paths, sorted.
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
        // The order of a hash map differs between processes.
        paths.sort_unstable();
        paths
    }

    /// Returns the version of the file that the agent knows.
    pub fn version(&self, path: &Path) -> Option<u64> {
        self.known(|known| {
            known
                .versions
                .get(path)
                .or_else(|| known.shared.get(path))
                .copied()
        })
    }

    /// Records that the agent knows this content.
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

    /// Computes the version of a content.
    pub fn version_of(content: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64(content)
    }

    /// Takes the entries that are not stored yet; the caller stores them.
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
