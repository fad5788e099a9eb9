//! Lets git be run only in workspaces that the person trusts.

use std::path::Path;

use posse_tools::CheckoutGate;

use crate::config::search_paths::SearchPaths;

/// Allows trusted workspaces.
#[derive(Debug)]
pub(crate) struct TrustGate {
    /// `--trust`: all are allowed.
    pub(crate) trusts: bool,
}

impl CheckoutGate for TrustGate {
    fn allows(&self, checkout: &Path) -> bool {
        self.trusts || SearchPaths::at(checkout).trust.is_trusted()
    }
}
