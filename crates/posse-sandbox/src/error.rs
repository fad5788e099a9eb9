//! Why the launcher could not make a sandbox.

use std::fmt::Display;
use std::path::Path;

/// A step of the launcher that failed.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {reason}")]
pub(crate) struct LaunchError {
    step: String,
    reason: String,
}

impl LaunchError {
    pub(crate) fn new(step: impl Display, reason: impl Display) -> Self {
        Self {
            step: step.to_string(),
            reason: reason.to_string(),
        }
    }
}

/// Says which step failed.
pub(crate) trait Step<T> {
    fn step(self, step: &str) -> Result<T, LaunchError>;
    fn step_at(self, step: &str, path: &Path) -> Result<T, LaunchError>;
}

impl<T, E: Display> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, LaunchError> {
        self.map_err(|error| LaunchError::new(step, error))
    }

    fn step_at(self, step: &str, path: &Path) -> Result<T, LaunchError> {
        let at = |error| LaunchError::new(format_args!("{step} {}", path.display()), error);
        self.map_err(at)
    }
}
