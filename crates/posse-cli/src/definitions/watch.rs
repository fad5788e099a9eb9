//! Watches definitions while posse runs: a thread reads them again when they change, and reports
//! what has changed.

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
mod portable;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_runtime::definition::catalogue::Catalogue;

#[cfg(target_os = "linux")]
use self::inotify::{Changes, Stopper};
#[cfg(not(target_os = "linux"))]
use self::portable::{NotifyChanges as Changes, NotifyStopper as Stopper};
use super::{DefinitionSet, HasName, Remark};
use crate::output::{say, tame};

/// Changes in quick succession are treated as one.
const QUIET: Duration = Duration::from_millis(100);
/// Maximum time to wait for more changes.
const PATIENCE: Duration = Duration::from_secs(1);
/// Number of remarks shown at once.
const TOLD: usize = 5;

/// Sources of definitions that can change.
pub(crate) trait WatchedSources: Send + 'static {
    /// What is defined.
    type Item: HasName;
    /// What they are called.
    const WORD: &'static str;
    /// The command that lists what is wrong with them.
    const CHECK: &'static str;

    /// Reads all current definitions.
    fn load(&self) -> DefinitionSet<Self::Item>;

    /// Reads only these paths.
    fn load_only(&self, paths: &[PathBuf]) -> DefinitionSet<Self::Item>;

    /// Returns the directories that can hold definitions, existing or not.
    fn candidates(&self) -> Vec<PathBuf>;

    /// Returns where the agent works.
    fn cwd(&self) -> &Path;
}

/// The definitions of a run, and where they come from.
pub(crate) struct LiveDefinitions<S: WatchedSources> {
    pub(crate) sources: S,
    pub(crate) loaded: DefinitionSet<S::Item>,
    pub(crate) catalogue: Arc<Catalogue<S::Item>>,
}

/// Watches definitions until it is dropped.
pub(crate) struct WatchGuard {
    /// `None` if nothing can be watched.
    _stopper: Option<Stopper>,
}

/// A change in a directory that is watched.
enum Change {
    /// Something at this path.
    At(PathBuf),
    /// There were too many to name them.
    Unknown,
}

/// What a wait for changes came to.
enum Waited {
    /// There are some.
    Changed(Vec<Change>),
    /// There are none.
    Quiet,
    /// Nobody wants to know any more.
    Stopped,
}

impl<S: WatchedSources> LiveDefinitions<S> {
    pub(crate) fn new(sources: S) -> Self {
        let loaded = sources.load();
        let catalogue = Arc::new(loaded.definitions().into());
        Self {
            sources,
            loaded,
            catalogue,
        }
    }

    /// Starts watching in a thread, and returns at once.
    pub(crate) fn watch(self) -> WatchGuard {
        start(S::WORD, move |watch| keep_up(self, watch))
    }
}

/// Files that are not definitions, and that change as these do.
pub(crate) trait WatchedFiles: Send + 'static {
    /// What is read from them.
    type Content;
    /// What they are called.
    const WORD: &'static str;

    /// Returns the paths of the files, existing or not.
    fn paths(&self) -> Vec<PathBuf>;

    /// Reads all of them.
    fn read(&self) -> Self::Content;

    /// Takes what was read, once at the beginning and after each change.
    fn take(&mut self, content: Self::Content);
}

/// Starts watching files in a thread, and returns at once.
pub(crate) fn watch_files<F: WatchedFiles>(mut files: F) -> WatchGuard {
    start(F::WORD, move |mut watch| {
        loop {
            let content = watch.settle(
                F::WORD,
                || files.paths(),
                || (files.read(), linked(&files.paths())),
            );
            files.take(content);
            if watch.wait().is_none() {
                return;
            }
        }
    })
}

/// Returns the directories that links among these paths lead to.
fn linked(paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    let real = paths.iter().filter_map(|path| {
        let real = path.canonicalize().ok().filter(|real| real != path)?;
        Some(real.parent()?.to_owned())
    });
    real.collect()
}

/// Runs a watcher in a thread.
fn start(word: &'static str, run: impl FnOnce(DirectoryWatcher) + Send + 'static) -> WatchGuard {
    let (changes, stopper) = match Changes::new() {
        Ok(both) => both,
        Err(error) => {
            unwatched(word, &error);
            return WatchGuard { _stopper: None };
        }
    };
    let watch = DirectoryWatcher::new(changes);
    if let Err(error) = std::thread::Builder::new()
        .name(format!("posse-{word}"))
        .spawn(move || run(watch))
    {
        unwatched(word, &error);
    }
    WatchGuard {
        _stopper: Some(stopper),
    }
}

/// Warns that changes are not noticed.
fn unwatched(what: &str, why: &dyn std::fmt::Display) {
    let what = format!("warning: {what}: not watched; changes apply from the next run: {why}");
    say(&tame(&what));
}

/// Runs until it is stopped.
fn keep_up<S: WatchedSources>(mut live: LiveDefinitions<S>, mut watch: DirectoryWatcher) {
    loop {
        let now = watch.load(&live.sources);
        // An unchanged catalogue is not replaced: agents would be told of types they know.
        if !now.counts_the_same(&live.loaded) {
            live.catalogue.replace(now.definitions());
        }
        if let Some(line) = difference((S::WORD, S::CHECK), &live.loaded, &now, live.sources.cwd())
        {
            say(&line);
        }
        live.loaded = now;
        if watch.wait().is_none() {
            return;
        }
    }
}

/// The watcher and the directories it watches.
struct DirectoryWatcher {
    changes: Changes,
    around: WatchedPaths,
    armed: BTreeSet<PathBuf>,
    /// A warning about a directory that cannot be watched was shown.
    told: bool,
}

impl DirectoryWatcher {
    fn new(changes: Changes) -> Self {
        Self {
            changes,
            around: WatchedPaths::default(),
            armed: BTreeSet::new(),
            told: false,
        }
    }

    /// Waits for changes that concern definitions, and for the end of those that follow. Returns
    /// `None` if it is stopped.
    fn wait(&mut self) -> Option<()> {
        while !self.hears(None)? {}
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && self.hears(Some(QUIET))? {}
        Some(())
    }

    /// Waits, at most so long, and returns true if something changed that concerns definitions;
    /// `None` if it is stopped. Other changes do not end the wait.
    fn hears(&mut self, most: Option<Duration>) -> Option<bool> {
        let begun = Instant::now();
        loop {
            let left = most.map(|most| most.saturating_sub(begun.elapsed()));
            match self.changes.wait(left) {
                Waited::Stopped => return None,
                Waited::Quiet => return Some(false),
                Waited::Changed(all) => {
                    if all.iter().any(|change| self.around.concerns(change)) {
                        return Some(true);
                    }
                }
            }
        }
    }

    /// Reads all definitions such that no later change is missed.
    fn load<S: WatchedSources>(&mut self, sources: &S) -> DefinitionSet<S::Item> {
        let read = || {
            let loaded = sources.load();
            let directories = loaded.directories.clone();
            (loaded, directories)
        };
        self.settle(S::WORD, || sources.candidates(), read)
    }

    /// Reads everything such that no later change is missed. All watches are set again, because a
    /// directory may have been replaced by another one of the same name. `read` also returns the
    /// directories that it has looked at.
    fn settle<T>(
        &mut self,
        word: &str,
        candidates: impl Fn() -> Vec<PathBuf>,
        read: impl Fn() -> (T, BTreeSet<PathBuf>),
    ) -> T {
        let before = std::mem::take(&mut self.armed);
        loop {
            // Asked again each time: a memory file may import others by now.
            let around = WatchedPaths::of(candidates());
            let is_known = around == self.around;
            self.around = around;
            let (loaded, directories) = read();
            let there = self.around.parents.iter().filter(|path| path.is_dir());
            let wanted: BTreeSet<PathBuf> = directories.iter().chain(there).cloned().collect();
            let new: Vec<PathBuf> = wanted.difference(&self.armed).cloned().collect();
            // Read after the last watch was set, so that nothing changed unnoticed in between.
            if new.is_empty() && is_known {
                for gone in before.difference(&self.armed) {
                    self.changes.unwatch(gone);
                }
                return loaded;
            }
            for path in new {
                self.arm(path, word);
            }
        }
    }

    fn arm(&mut self, path: PathBuf, word: &str) {
        let outcome = self.changes.watch(&path);
        self.armed.insert(path);
        match outcome {
            Err(error) if error.kind() != io::ErrorKind::NotFound && !self.told => {
                self.told = true;
                unwatched(word, &error);
            }
            _ => {}
        }
    }
}

/// Where definitions can be.
#[derive(Default, PartialEq, Eq)]
struct WatchedPaths {
    /// The directories with definitions, existing or not.
    candidates: Vec<PathBuf>,
    /// The two directories above each, in which one appears or disappears.
    parents: BTreeSet<PathBuf>,
}

impl WatchedPaths {
    fn of(candidates: Vec<PathBuf>) -> Self {
        let above = |path: &PathBuf| {
            path.ancestors()
                .skip(1)
                .take(2)
                .map(Path::to_owned)
                .collect::<Vec<_>>()
        };
        let parents = candidates.iter().flat_map(above).collect();
        Self {
            candidates,
            parents,
        }
    }

    /// Returns true if a change could affect definitions.
    fn concerns(&self, change: &Change) -> bool {
        let Change::At(path) = change else {
            return true;
        };
        let beside = path
            .parent()
            .is_some_and(|parent| self.parents.contains(parent));
        !beside
            || self
                .candidates
                .iter()
                .any(|candidate| candidate.starts_with(path))
    }
}

/// Returns what has changed in one line; `None` if nothing has.
fn difference<T: HasName>(
    (word, check): (&str, &str),
    before: &DefinitionSet<T>,
    now: &DefinitionSet<T>,
    cwd: &Path,
) -> Option<String> {
    let name = |sign: &str, name: &str| format!("{sign} {}", tame(name));
    let mut names = Vec::new();
    for known in &now.known {
        match before.find(known.definition.name()) {
            None => names.push(name("+", known.definition.name())),
            Some(was) if was.definition != known.definition => {
                names.push(name("~", known.definition.name()));
            }
            Some(_) => {}
        }
    }
    let gone = before
        .known
        .iter()
        .filter(|known| now.find(known.definition.name()).is_none());
    names.extend(gone.map(|known| name("-", known.definition.name())));
    let new: Vec<&Remark> = now
        .trouble()
        .filter(|remark| !before.remarks.contains(remark))
        .collect();
    let mut parts: Vec<String> = Vec::from_iter((!names.is_empty()).then(|| names.join(", ")));
    parts.extend(new.iter().take(TOLD).map(|remark| remark.in_a_line(cwd)));
    if new.len() > TOLD {
        parts.push(format!(
            "and {} more: `{check}` lists all",
            new.len() - TOLD
        ));
    }
    (!parts.is_empty()).then(|| format!("{word}: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests;
