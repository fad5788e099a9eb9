//! The hooks of settings as they are now: their files change while posse runs.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::hook::HookSet;

/// Hooks that can be replaced. Everyone who shares them sees the change with the next call.
#[derive(Debug, Default)]
pub struct HookBook {
    hooks: RwLock<Arc<HookSet>>,
    /// What the workspace is to be prepared for before the first prompt.
    prepares: Option<Preparation>,
    /// What watches files for hooks.
    watcher: RwLock<Option<Weak<dyn FileWatcher>>>,
}

/// Watches files for FileChanged hooks.
pub trait FileWatcher: fmt::Debug + Send + Sync {
    /// Watches these files, too, which a hook has named.
    fn add(&self, paths: &[PathBuf]);

    /// Looks at the hooks again: others hold now.
    fn look_again(&self);
}

/// What a workspace can be prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// Work in it for the first time: `--init`.
    First,
    /// Further work: `--maintenance`.
    Maintenance,
}

impl Preparation {
    /// Returns the word that hooks know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "init",
            Self::Maintenance => "maintenance",
        }
    }
}

impl HookBook {
    /// Returns a book with these hooks.
    pub fn new(hooks: HookSet) -> Self {
        Self {
            hooks: RwLock::new(Arc::new(hooks)),
            prepares: None,
            watcher: RwLock::default(),
        }
    }

    /// Returns the same book for a process that prepares its workspace first.
    #[must_use]
    pub fn preparing(self, prepares: Option<Preparation>) -> Self {
        Self { prepares, ..self }
    }

    /// Returns the current hooks.
    pub fn now(&self) -> Arc<HookSet> {
        Arc::clone(&self.hooks.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns what the workspace is to be prepared for.
    pub(crate) fn prepares(&self) -> Option<Preparation> {
        self.prepares
    }

    /// Replaces the hooks.
    pub fn replace(&self, hooks: HookSet) {
        *self.hooks.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hooks);
        if let Some(watcher) = self.watcher() {
            watcher.look_again();
        }
    }

    /// Sets what watches files for hooks, as long as somebody holds it.
    pub fn watched_by(&self, watcher: Weak<dyn FileWatcher>) {
        *self.watcher.write().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
    }

    /// Watches files that hooks have named. Where nothing watches files, nothing follows.
    pub fn watch(&self, paths: &[PathBuf]) {
        if let Some(watcher) = self.watcher().filter(|_| !paths.is_empty()) {
            watcher.add(paths);
        }
    }

    fn watcher(&self) -> Option<Arc<dyn FileWatcher>> {
        let watcher = self.watcher.read().unwrap_or_else(PoisonError::into_inner);
        watcher.as_ref()?.upgrade()
    }
}
