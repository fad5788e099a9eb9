//! Decides where git may be run: it runs what a repository's configuration names.

use std::fmt::Debug;
use std::path::Path;

use super::{GitWorktrees, WorktreeError};

/// Decides whether git may be run in a checkout.
pub trait CheckoutGate: Send + Sync + Debug {
    /// Returns true if it may. Blocks.
    fn allows(&self, checkout: &Path) -> bool;
}

impl GitWorktrees {
    /// Fails if git may not be run in a checkout.
    pub(super) fn must_be_allowed(&self, checkout: &Path) -> Result<(), WorktreeError> {
        match &self.gate {
            Some(gate) if !gate.allows(checkout) => Err(WorktreeError::Untrusted),
            _ => Ok(()),
        }
    }
}
