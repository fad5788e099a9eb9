//! The hooks of settings as they are now: their files change while posse runs.

use std::sync::{Arc, PoisonError, RwLock};

use crate::hook::HookSet;

/// Hooks that can be replaced. Everyone who shares them sees the change with the next call.
#[derive(Debug, Default)]
pub struct HookBook(RwLock<Arc<HookSet>>);

impl HookBook {
    /// Returns a book with these hooks.
    pub fn new(hooks: HookSet) -> Self {
        Self(RwLock::new(Arc::new(hooks)))
    }

    /// Returns the current hooks.
    pub fn now(&self) -> Arc<HookSet> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the hooks.
    pub fn replace(&self, hooks: HookSet) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hooks);
    }
}
