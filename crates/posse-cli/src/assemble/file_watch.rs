//! Files that FileChanged hooks are about, while posse runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use posse_runtime::SessionHooks;
use posse_runtime::hook::{FileWatcher, Hook, HookBook, HookEvent, HookState};
use serde_json::json;

use super::hook_watch::HookAsker;
use crate::definitions::{WatchGuard, WatchedFiles, watch_files};
use crate::output::say;

/// Maximum number of files that are watched.
const MOST: usize = 1_000;

/// Runs FileChanged hooks until it is dropped.
pub(crate) struct FileWatch {
    _files: Arc<HookFiles>,
}

impl FileWatch {
    /// Watches what the hooks of a session that works in `project` are about. Without such hooks,
    /// nothing is watched.
    pub(crate) fn start(book: &Arc<HookBook>, hooks: SessionHooks, project: &Path) -> Self {
        let files = Arc::new_cyclic(|me| HookFiles {
            book: Arc::clone(book),
            project: project.to_owned(),
            asker: HookAsker::new(hooks),
            state: Mutex::default(),
            me: Weak::clone(me),
        });
        book.watched_by(files.me.clone());
        files.look_again();
        Self { _files: files }
    }
}

/// The files, and what runs the hooks.
struct HookFiles {
    book: Arc<HookBook>,
    project: PathBuf,
    asker: HookAsker,
    state: Mutex<WatchState>,
    me: Weak<Self>,
}

#[derive(Default)]
struct WatchState {
    /// Files that hooks have named while they ran.
    named: BTreeSet<PathBuf>,
    /// All files, as they were when they were looked at last.
    seen: BTreeMap<PathBuf, Option<FileStamp>>,
    /// Watches them.
    guard: Option<WatchGuard>,
    /// People were told that there are too many.
    told: bool,
}

/// What differs once a file has changed: device, number, length and time of the last change.
type FileStamp = (u64, u64, u64, (i64, i64));

/// Returns the stamp of a file; none if it does not exist.
fn stamp_of(path: &Path) -> Option<FileStamp> {
    let found = std::fs::metadata(path).ok()?;
    let changed = (found.mtime(), found.mtime_nsec());
    Some((found.dev(), found.ino(), found.len(), changed))
}

impl HookFiles {
    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where a file is that a hook names.
    fn place(&self, name: &Path) -> PathBuf {
        self.project.join(name).components().collect()
    }

    /// Returns the files that hooks are about: those that their matchers name, and `named`.
    fn wanted(&self, named: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let hooks = self.book.now();
        let mut wanted = BTreeSet::new();
        if !hooks.has(HookEvent::FileChanged) {
            return wanted;
        }
        for hook in hooks.all().filter(|hook| is_active(hook)) {
            let matcher = hook.matcher.to_string();
            let names = matcher.split('|').filter(|name| !matches!(*name, "" | "*"));
            wanted.extend(names.map(|name| self.place(Path::new(name))));
        }
        wanted.extend(named.iter().cloned());
        wanted
    }

    /// Runs hooks about the files that have changed since they were looked at last.
    fn run_hooks(&self) {
        let mut changed = Vec::new();
        for (path, seen) in &mut self.state().seen {
            let now = stamp_of(path);
            let before = std::mem::replace(seen, now);
            match (before, now) {
                (None, Some(_)) => changed.push((path.clone(), "add")),
                (Some(_), None) => changed.push((path.clone(), "unlink")),
                (before, now) if before != now => changed.push((path.clone(), "change")),
                _ => {}
            }
        }
        let mut named = Vec::new();
        for (path, event) in changed {
            let name = path.file_name().map(OsStr::to_string_lossy);
            let own = json!({ "file_path": path, "event": event });
            let about = name.unwrap_or_default();
            let said = self.asker.ask(HookEvent::FileChanged, &about, own);
            named.extend(said.more.watch);
        }
        if !named.is_empty() {
            self.add(&named);
        }
    }
}

/// Returns true if a changed file can lead to a run of the hook.
fn is_active(hook: &Hook) -> bool {
    hook.event == HookEvent::FileChanged && hook.state == HookState::Active
}

impl FileWatcher for HookFiles {
    fn add(&self, paths: &[PathBuf]) {
        let mut state = self.state();
        for path in paths {
            // One more is kept, by which it is noticed that there are too many.
            if state.named.len() <= MOST {
                state.named.insert(self.place(path));
            }
        }
        drop(state);
        self.look_again();
    }

    fn look_again(&self) {
        let mut state = self.state();
        let mut wanted = self.wanted(&state.named);
        if wanted.len() > MOST {
            if !std::mem::replace(&mut state.told, true) {
                say(&format!(
                    "hooks: more than {MOST} files are to be watched; the others are not"
                ));
            }
            wanted = wanted.into_iter().take(MOST).collect();
        }
        if wanted.iter().eq(state.seen.keys()) {
            return;
        }
        let known = std::mem::take(&mut state.seen);
        let seen = |path: &PathBuf| {
            let known = known.get(path).copied();
            known.unwrap_or_else(|| stamp_of(path))
        };
        state.seen = wanted
            .iter()
            .map(|path| (path.clone(), seen(path)))
            .collect();
        // The one before ends.
        state.guard = (!wanted.is_empty()).then(|| {
            watch_files(ChangingFiles {
                files: self.me.clone(),
                paths: wanted.into_iter().collect(),
            })
        });
    }
}

impl fmt::Debug for HookFiles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        out.debug_tuple("HookFiles").field(&state.seen).finish()
    }
}

/// Files that are watched together.
struct ChangingFiles {
    /// None once nobody wants to know of changes.
    files: Weak<HookFiles>,
    paths: Vec<PathBuf>,
}

impl WatchedFiles for ChangingFiles {
    type Content = ();
    const WORD: &'static str = "files of hooks";

    fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    fn read(&self) {}

    fn take(&mut self, (): ()) {
        if let Some(files) = self.files.upgrade() {
            files.run_hooks();
        }
    }
}
