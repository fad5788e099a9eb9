//! Definitions that change while posse runs: a thread watches where they can be, reads them anew, and says
//! what has changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use posse_runtime::definition::catalogue::Catalogue;

use super::{DefinitionSet, HasName, Remark};
use crate::output::{say, tame};

/// Changes that come so soon after each other are one.
const QUIET: Duration = Duration::from_millis(100);
/// But they are not waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many remarks are told at once.
const TOLD: usize = 5;

/// Where definitions come from that can change.
pub(crate) trait WatchedSources: Send + 'static {
    /// What is defined.
    type Item: HasName;
    /// What `posse` calls it.
    const WORD: &'static str;

    /// Reads all that there is now.
    fn load(&self) -> DefinitionSet<Self::Item>;

    /// Reads what is at some paths only.
    fn load_only(&self, paths: &[PathBuf]) -> DefinitionSet<Self::Item>;

    /// Returns the directories that can hold definitions, there or not.
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

/// Definitions are watched until this is dropped.
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

    /// Begins to watch. Nothing is waited for: all is done in a thread.
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
        // If it has no room, the thread is about to wake anyway.
        let _ = self.wake.try_send(());
    }
}

fn unwatched(what: &str, why: &dyn std::fmt::Display) {
    let what = format!("warning: {what}: not watched; changes apply from the next run: {why}");
    say(&tame(&what));
}

/// Goes on until it is told to stop.
fn keep_up<S: WatchedSources>(
    mut live: LiveDefinitions<S>,
    wake: &SyncSender<()>,
    woken: &Receiver<()>,
    stop: &AtomicBool,
) {
    let around = WatchedPaths::of(live.sources.candidates());
    let (wake, watched) = (wake.clone(), around.clone());
    let hear = move |event: notify::Result<Event>| {
        if event.as_ref().map_or(true, |event| watched.concerns(event)) {
            // If there is no room, somebody has said it already.
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
        if !now.counts_the_same(&live.loaded) {
            live.catalogue.replace(now.definitions());
        }
        if let Some(line) = difference(S::WORD, &live.loaded, &now, live.sources.cwd()) {
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

struct DirectoryWatcher {
    watcher: RecommendedWatcher,
    armed: BTreeSet<PathBuf>,
    /// Whether it was said that something cannot be watched.
    told: bool,
}

impl DirectoryWatcher {
    /// Reads everything, such that whatever changes after it was read is heard of. All watches are set
    /// anew: a directory may be another one of the same name by now.
    fn load<S: WatchedSources>(
        &mut self,
        sources: &S,
        around: &WatchedPaths,
    ) -> DefinitionSet<S::Item> {
        let before = std::mem::take(&mut self.armed);
        loop {
            let loaded = sources.load();
            let there = around.parents.iter().filter(|path| path.is_dir());
            let wanted: BTreeSet<PathBuf> =
                loaded.directories.iter().chain(there).cloned().collect();
            let new: Vec<PathBuf> = wanted.difference(&self.armed).cloned().collect();
            if new.is_empty() {
                for gone in before.difference(&self.armed) {
                    // It may be gone from the disk as well.
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

/// Where directories of definitions can be.
#[derive(Clone)]
struct WatchedPaths {
    /// The directories themselves, there or not.
    candidates: Vec<PathBuf>,
    /// The two above each of them, in which one is seen to come or go.
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

    /// Returns true if something has changed that could define something. That files were looked at
    /// is no change: we look at them ourselves.
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

/// Returns what has changed, in a line; none if nothing has.
fn difference<T: HasName>(
    word: &str,
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
            "and {} more: `posse {word} check` lists all",
            new.len() - TOLD
        ));
    }
    (!parts.is_empty()).then(|| format!("{word}: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests;
