//! Hooks of the program that drives posse.

use std::fmt;
use std::sync::Arc;

use posse_port::hooks::HookRunner;
use posse_runtime::hook::Hook;

/// Hooks that a program has declared, and what asks it.
#[derive(Clone)]
pub(crate) struct ProgramHooks {
    pub(crate) hooks: Vec<Arc<Hook>>,
    pub(crate) runner: Arc<dyn HookRunner>,
}

impl fmt::Debug for ProgramHooks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(&self.hooks).finish()
    }
}
