//! Watches definitions while posse runs: a thread reads them again when they change, and reports
//! what has changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use posse_runtime::definition::catalogue::Catalogue;

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
    stop: Arc<AtomicBool>,
    wake: SyncSender<()>,
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
        let (wake, woken) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let watching = WatchGuard {
            stop: stop.clone(),
            wake: wake.clone(),
        };
        let work = move || keep_up(self, &wake, &woken, &stop);
        if let Err(error) = std::thread::Builder::new()
            .name(format!("posse-{}", S::WORD))
            .spawn(work)
        {
            unwatched(S::WORD, &error);
        }
        watching
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // If the channel is full, the thread is about to wake up anyway.
        let _ = self.wake.try_send(());
    }
}

/// Warns that changes are not noticed.
fn unwatched(what: &str, why: &dyn std::fmt::Display) {
    let what = format!("warning: {what}: not watched; changes apply from the next run: {why}");
    say(&tame(&what));
}

/// Runs until it is stopped.
fn keep_up<S: WatchedSources>(
    mut live: LiveDefinitions<S>,
    wake: &SyncSender<()>,
    woken: &Receiver<()>,
    stop: &AtomicBool,
) {
    let around = SharedPaths::default();
    let (wake, watched) = (wake.clone(), around.clone());
    let hear = move |event: notify::Result<Event>| {
        if event
            .as_ref()
            .map_or(true, |event| watched.get().concerns(event))
        {
            // If the channel is full, a wake-up is already pending.
            let _ = wake.try_send(());
        }
    };
    let mut watch = match notify::recommended_watcher(hear) {
        Ok(watcher) => DirectoryWatcher {
            watcher,
            armed: BTreeSet::new(),
            told: false,
        },
        Err(error) => return unwatched(S::WORD, &error),
    };
    loop {
        let now = watch.load(&live.sources, &around);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // An unchanged catalogue is not replaced: agents would be told of types they know.
        if !now.counts_the_same(&live.loaded) {
            live.catalogue.replace(now.definitions());
        }
        if let Some(line) = difference((S::WORD, S::CHECK), &live.loaded, &now, live.sources.cwd())
        {
            say(&line);
        }
        live.loaded = now;
        if woken.recv().is_err() {
            return;
        }
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && woken.recv_timeout(QUIET).is_ok() {}
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// The watcher and the directories it watches.
struct DirectoryWatcher {
    watcher: RecommendedWatcher,
    armed: BTreeSet<PathBuf>,
    /// A warning about a directory that cannot be watched was shown.
    told: bool,
}

impl DirectoryWatcher {
    /// Reads everything such that no later change is missed. All watches are set again, because a
    /// directory may have been replaced by another one of the same name.
    fn load<S: WatchedSources>(
        &mut self,
        sources: &S,
        around: &SharedPaths,
    ) -> DefinitionSet<S::Item> {
        let before = std::mem::take(&mut self.armed);
        loop {
            // Asked again each time: a memory file may import others by now.
            let is_known = around.replace(WatchedPaths::of(sources.candidates()));
            let loaded = sources.load();
            let parents = around.get().parents.clone();
            let there = parents.iter().filter(|path| path.is_dir());
            let wanted: BTreeSet<PathBuf> =
                loaded.directories.iter().chain(there).cloned().collect();
            let new: Vec<PathBuf> = wanted.difference(&self.armed).cloned().collect();
            // Read after the last watch was set, so that nothing changed unnoticed in between.
            if new.is_empty() && is_known {
                for gone in before.difference(&self.armed) {
                    // The directory may be gone from the disk.
                    let _ = self.watcher.unwatch(gone);
                }
                return loaded;
            }
            for path in new {
                self.arm(path, S::WORD);
            }
        }
    }

    fn arm(&mut self, path: PathBuf, word: &str) {
        let outcome = self.watcher.watch(&path, RecursiveMode::NonRecursive);
        self.armed.insert(path);
        match outcome {
            Err(error) if !matches!(error.kind, notify::ErrorKind::PathNotFound) && !self.told => {
                self.told = true;
                unwatched(word, &error);
            }
            _ => {}
        }
    }
}

/// The watched paths, as the watcher's thread sees them.
#[derive(Clone, Default)]
struct SharedPaths(Arc<Mutex<WatchedPaths>>);

impl SharedPaths {
    fn get(&self) -> MutexGuard<'_, WatchedPaths> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the paths. Returns true if they were the same.
    fn replace(&self, paths: WatchedPaths) -> bool {
        let mut known = self.get();
        let is_same = *known == paths;
        *known = paths;
        is_same
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

    /// Returns true if a change could affect definitions. Reading files is not a change, because
    /// the watcher itself reads them.
    fn concerns(&self, event: &Event) -> bool {
        if matches!(event.kind, EventKind::Access(_)) {
            return false;
        }
        let concerns = |path: &PathBuf| {
            let beside = path
                .parent()
                .is_some_and(|parent| self.parents.contains(parent));
            !beside
                || self
                    .candidates
                    .iter()
                    .any(|candidate| candidate.starts_with(path))
        };
        event.need_rescan() || event.paths.iter().any(concerns)
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
