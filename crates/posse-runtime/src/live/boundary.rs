//! What holds programs of a repository.

use std::sync::Arc;

use posse_permission::{Consent, Rights};
use posse_port::confinement::Where;
use posse_port::process::{ProcessBoundary, ProcessBounds};
use posse_port::tool::{NoHosts, Subject};

/// Returns what holds a program that a repository declares, such as a hook: it may touch what an
/// agent's own command may touch unasked. `what` is named where people are told of it.
pub fn of_repository(rights: &Rights, what: &'static str) -> ProcessBoundary {
    match rights.place(&Subject::runs(what), &Consent::Rules) {
        Where::Within { bounds, .. } => ProcessBoundary::Sandbox(ProcessBounds {
            confinement: bounds,
            workspace: Arc::clone(rights.workspace()),
            files: rights.policy(),
            hosts: Arc::new(NoHosts),
        }),
        Where::Outside => ProcessBoundary::None,
    }
}
