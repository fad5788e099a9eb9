//! `posse store backup`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use posse_store::maintain;
use serde_json::json;

use super::{shown, size};
use crate::hint::Advised;
use crate::output::{json_line, print};

/// Copy the store into a new file, as it is at one moment, while others work.
///
/// The copy is a store itself: `--store sqlite:FILE` looks into it.
#[derive(clap::Args)]
pub(super) struct Backup {
    /// The copy; it must not be there yet
    file: PathBuf,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(super) fn run(self, path: &Path) -> anyhow::Result<ExitCode> {
        if std::fs::symlink_metadata(&self.file).is_ok() {
            anyhow::bail!(Advised {
                what: format!("{} is there already", self.file.display()),
                advice: "name a new file; nothing is ever overwritten".into(),
            });
        }
        let parent = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            anyhow::bail!(Advised {
                what: format!("there is no directory {}", parent.display()),
                advice: "make it first, or name a file elsewhere".into(),
            });
        }
        let bytes = maintain::back_up(path, &self.file)?;
        let line = match self.json {
            true => json_line(&json!({"file": self.file.to_string_lossy(), "bytes": bytes})),
            false => format!("copied to {}: {}\n", shown(&self.file), size(bytes)),
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
