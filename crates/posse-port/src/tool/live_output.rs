//! The way out for what a call prints while it runs.

use std::sync::Arc;

/// Those who watch a call.
pub trait OutputViewers: Send + Sync {
    /// Returns true if someone wants to see what the call prints.
    fn is_watched(&self) -> bool;

    /// Shows text that the call has printed. `skipped` bytes before it are not shown.
    fn show(&self, text: String, skipped: u64);
}

/// Where a call shows what it prints while it runs. Cheap to clone; by default nobody watches.
#[derive(Clone, Default)]
pub struct LiveOutput(Option<Arc<dyn OutputViewers>>);

impl LiveOutput {
    /// Returns an output that these see.
    pub fn to(viewers: Arc<dyn OutputViewers>) -> Self {
        Self(Some(viewers))
    }

    /// Returns true if someone wants to see it. Costs next to nothing.
    pub fn is_watched(&self) -> bool {
        self.0.as_ref().is_some_and(|viewers| viewers.is_watched())
    }

    /// Shows text that was printed. `skipped` bytes before it are not shown.
    pub fn show(&self, text: String, skipped: u64) {
        if let Some(viewers) = &self.0 {
            viewers.show(text, skipped);
        }
    }
}
