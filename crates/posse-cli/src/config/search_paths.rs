//! Where settings, instructions and definitions are looked for.

use std::path::{Path, PathBuf};

use super::environment;

/// Where settings and instructions are looked for. Nothing else depends on the environment.
#[derive(Clone, Debug)]
pub(crate) struct SearchPaths {
    /// The administrator's settings, `/etc/posse/settings.json`.
    pub(crate) managed: PathBuf,
    /// `$POSSE_HOME`.
    pub(crate) posse_home: Option<PathBuf>,
    /// The user's home directory.
    pub(crate) home: Option<PathBuf>,
    /// Where the agent works.
    pub(crate) cwd: PathBuf,
}

impl SearchPaths {
    /// Returns the paths of this machine and user, for an agent that works in `cwd`.
    pub(crate) fn at(cwd: &Path) -> Self {
        Self {
            managed: PathBuf::from("/etc/posse/settings.json"),
            posse_home: environment::posse_home(),
            home: environment::home(),
            cwd: cwd.to_owned(),
        }
    }

    /// Returns the nearest directory from `cwd` up that contains a `.git`, else `cwd`.
    pub(crate) fn project(&self) -> &Path {
        self.cwd
            .ancestors()
            .find(|directory| directory.join(".git").exists())
            .unwrap_or(&self.cwd)
    }
}
