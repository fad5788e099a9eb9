//! Where settings, instructions and definitions are looked for.

use std::path::{Path, PathBuf};

use super::environment;
use super::trust::{Trust, workspace};

/// Which of the user's and the repository's files are read: `--setting-sources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SettingSources {
    /// Files in the user's own directories.
    pub(crate) user: bool,
    /// Files that the repository shares.
    pub(crate) project: bool,
    /// `settings.local.json` of the repository.
    pub(crate) local: bool,
}

impl Default for SettingSources {
    fn default() -> Self {
        Self {
            user: true,
            project: true,
            local: true,
        }
    }
}

impl SettingSources {
    /// Returns the words that the flag takes.
    pub(crate) fn words(self) -> Vec<&'static str> {
        let all = [
            (self.user, "user"),
            (self.project, "project"),
            (self.local, "local"),
        ];
        all.into_iter()
            .filter_map(|(is_read, word)| is_read.then_some(word))
            .collect()
    }
}

/// A word that names no source.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a source; use user, project and local, separated by commas")]
pub(crate) struct UnknownSource(String);

impl std::str::FromStr for SettingSources {
    type Err = UnknownSource;

    fn from_str(list: &str) -> Result<Self, UnknownSource> {
        let (user, project, local) = (false, false, false);
        let mut sources = Self {
            user,
            project,
            local,
        };
        for word in list.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            match word {
                "user" => sources.user = true,
                "project" => sources.project = true,
                "local" => sources.local = true,
                other => return Err(UnknownSource(other.to_owned())),
            }
        }
        Ok(sources)
    }
}

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
    /// Which of their files are read. The administrator's always are.
    pub(crate) sources: SettingSources,
    /// Which of the repository's files count.
    pub(crate) trust: Trust,
}

impl SearchPaths {
    /// Returns the paths of this machine and user, for an agent that works in `cwd`.
    pub(crate) fn at(cwd: &Path) -> Self {
        let (posse_home, home) = (environment::posse_home(), environment::home());
        Self {
            managed: PathBuf::from("/etc/posse/settings.json"),
            trust: Trust::of(cwd, posse_home.as_deref(), home.as_deref()),
            posse_home,
            home,
            cwd: cwd.to_owned(),
            sources: SettingSources::default(),
        }
    }

    /// Returns the same paths, of which only the files of `sources` are read.
    pub(crate) fn limited_to(self, sources: SettingSources) -> Self {
        Self { sources, ..self }
    }

    /// Returns the same paths; if `trusts`, all files of the repository count.
    pub(crate) fn trusting_all_if(self, trusts: bool) -> Self {
        match trusts {
            true => Self {
                trust: Trust::everything(&self.cwd),
                ..self
            },
            false => self,
        }
    }

    /// Returns the nearest directory from `cwd` up that contains a `.git`, else `cwd`.
    pub(crate) fn project(&self) -> &Path {
        workspace::root(&self.cwd)
    }
}
