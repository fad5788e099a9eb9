//! `posse trust remove`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::trust::record::TrustFile;
use crate::config::trust::workspace;
use crate::config::{caller, environment};
use crate::error::Advised;
use crate::output::{say, tame};

/// Take back the trust in a workspace.
#[derive(clap::Args)]
pub(super) struct RemoveTrust {
    /// Directory in the workspace, which may be gone [default: the current one]
    dir: Option<PathBuf>,
}

impl RemoveTrust {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        caller::only_a_person_can("change which workspaces are trusted")?;
        let here = environment::working_directory()?;
        let dir = self.dir.map_or(here.clone(), |dir| here.join(dir));
        let dir = dir.canonicalize().unwrap_or(dir);
        let root = workspace::root(&dir);
        let home = environment::home();
        let posse_home = environment::posse_home().unwrap_or_default();
        let name = tame(&root.to_string_lossy());
        let is_forgotten = TrustFile::forget(&posse_home, home.as_deref(), root)?;
        if !is_forgotten {
            anyhow::bail!(Advised {
                what: format!("{name} is not trusted"),
                advice: "`posse trust list` shows what is".into(),
            });
        }
        say(&format!("{name} is not trusted any more"));
        Ok(ExitCode::SUCCESS)
    }
}
