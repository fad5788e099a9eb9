//! What has appeared deep in a workspace: in directories that a command has changed.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{FoundEntry, open_beneath};
use crate::git_settings::is_of_new;
use crate::layout::{children, is_of_packages, pointer, small_file};

/// How much earlier than the clock says a file may be marked.
const COARSE: Duration = Duration::from_millis(10);
/// What makes a directory a checkout.
const GIT: &str = ".git";

/// The directories of a workspace, as far as they are known.
#[derive(Debug, Default)]
pub struct KnownTree {
    directories: Mutex<HashSet<PathBuf>>,
    /// Whether a repository has appeared: the next command must not change what it runs.
    is_outdated: AtomicBool,
}

impl KnownTree {
    /// Returns a tree with these directories.
    pub fn new(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            directories: Mutex::new(directories.into_iter().collect()),
            is_outdated: AtomicBool::new(false),
        }
    }

    /// Returns true if a repository has appeared since it was made.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed)
    }
}

/// What was there before a command, at any depth.
#[derive(Debug)]
pub struct DeepWatch {
    /// The directories.
    pub tree: Arc<KnownTree>,
    /// Roots of what the command can change.
    pub roots: Vec<PathBuf>,
    /// Files that are guarded already.
    pub present: Vec<PathBuf>,
    /// Names that must not appear.
    pub names: Vec<&'static str>,
    /// Whatever is marked later has changed.
    pub since: SystemTime,
}

impl DeepWatch {
    /// Returns what has appeared, and remembers the directories that have.
    pub(super) fn appeared(&self) -> Vec<FoundEntry> {
        let mut known = self.tree.directories.lock();
        let known = match &mut known {
            Ok(known) => &mut **known,
            Err(poisoned) => &mut **poisoned.get_mut(),
        };
        let changed = known.iter().filter(|path| self.has_changed(path));
        let mut waiting: Vec<PathBuf> = changed.cloned().collect();
        let mut found = Vec::new();
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let (name, path) = (entry.file_name(), entry.path());
                if let Some(guarded) = self.names.iter().find(|it| name == **it) {
                    found.extend(self.found(&directory, guarded));
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && !is_of_packages(&name)
                    && known.insert(path.clone())
                {
                    waiting.push(path);
                }
            }
        }
        found
    }

    /// Returns an entry of a changed directory if it must not stay.
    fn found(&self, directory: &Path, name: &'static str) -> Option<FoundEntry> {
        let path = directory.join(name);
        if self.present.contains(&path) || !self.has_changed(&path) {
            return None;
        }
        if name == GIT && is_new_repository(&path) {
            self.tree.is_outdated.store(true, Ordering::Relaxed);
            return None;
        }
        let root = self.root_of(directory)?;
        let inner = directory.strip_prefix(root).ok()?;
        // A root itself is looked at by name.
        let opened = open_beneath(root, inner).filter(|_| !inner.as_os_str().is_empty())?;
        Some((opened, directory.to_owned(), name.into()))
    }

    /// Returns true if something has changed at a path that the command could change.
    fn has_changed(&self, path: &Path) -> bool {
        let Ok(found) = fs::symlink_metadata(path) else {
            return false;
        };
        let since = (self.since - COARSE).duration_since(UNIX_EPOCH);
        let since = since.unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let since = (seconds, i64::from(since.subsec_nanos()));
        self.root_of(path).is_some() && (found.ctime(), found.ctime_nsec()) >= since
    }

    fn root_of(&self, path: &Path) -> Option<&PathBuf> {
        self.roots.iter().find(|root| path.starts_with(root))
    }
}

/// Returns true if the git directory of a checkout is as git makes one: without hooks, and with no
/// settings that run anything.
fn is_new_repository(entry: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(entry) else {
        return false;
    };
    let directory = match found.is_dir() {
        true => Some(entry.to_owned()),
        // Of a linked worktree or a submodule. What it leads to is kept, or was made as well.
        false => pointer(entry),
    };
    let Some(directory) = directory.filter(|_| !found.is_symlink()) else {
        return false;
    };
    let text = |name: &str| {
        let text = small_file(&directory.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    };
    let hooks = children(&directory.join("hooks"));
    let is_sample = |hook: &PathBuf| hook.extension().is_some_and(|it| it == "sample");
    let is_real = |name: &str| !directory.join(name).is_symlink();
    ["config", "config.worktree", "hooks"]
        .into_iter()
        .all(is_real)
        && is_of_new(&text("config"))
        && is_of_new(&text("config.worktree"))
        && hooks.iter().all(is_sample)
}
