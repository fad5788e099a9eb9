//! Decides where git may be run: it runs what a repository's configuration names.

use std::fmt::Debug;
use std::path::Path;

/// Decides whether git may be run in a checkout.
pub trait CheckoutGate: Send + Sync + Debug {
    /// Returns true if it may. Blocks.
    fn allows(&self, checkout: &Path) -> bool;
}
