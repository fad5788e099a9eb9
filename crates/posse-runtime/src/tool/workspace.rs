//! Where an agent works, and what it knows of the files there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::port::store::SeenFile;

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
    pub mirror: Option<Mirror>,
    /// Where the agent keeps notes of its own.
    pub notes: Option<Notes>,
}

/// A checkout that stands in for others: what a rule says of a path of theirs it says of the same path here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The top directory of the worktree.
    pub here: PathBuf,
    /// The top directories of what it was made from, and of what that was made from; the nearest first.
    pub of: Vec<PathBuf>,
}

/// Notes that an agent keeps from one life to the next. It may write there whatever its mode is, but for
/// plan mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notes {
    /// Where they are.
    pub directory: PathBuf,
    /// Whether it may edit nothing else.
    pub only: bool,
}

/// The files whose content an agent knows, by resolved path. Clones share.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    versions: HashMap<PathBuf, u64>,
    /// What the store has not been told yet.
    fresh: Vec<SeenFile>,
}

impl Seen {
    /// What a store remembers.
    pub fn remembered(files: Vec<SeenFile>) -> Self {
        let versions = files.into_iter().map(|file| (file.path, file.version)).collect();
        Self(Arc::new(Mutex::new(Known { versions, fresh: Vec::new() })))
    }

    /// The version of the file that the agent knows.
    pub fn version(&self, path: &Path) -> Option<u64> {
        self.known(|known| known.versions.get(path).copied())
    }

    /// The agent now knows this content.
    pub fn learn(&self, path: &Path, content: &[u8]) {
        let version = Self::version_of(content);
        self.known(|known| {
            if known.versions.insert(path.to_owned(), version) != Some(version) {
                known.fresh.push(SeenFile { path: path.to_owned(), version });
            }
        });
    }

    /// What a content's version is.
    pub fn version_of(content: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64(content)
    }

    /// What the store has not been told yet; the caller tells it.
    pub(crate) fn take_fresh(&self) -> Vec<SeenFile> {
        self.known(|known| std::mem::take(&mut known.fresh))
    }

    fn known<T>(&self, with: impl FnOnce(&mut Known) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
