//! `posse store migrate`.

use std::path::Path;
use std::process::ExitCode;

use posse_store::{Sqlite, maintain};
use serde_json::json;

use super::shown;
use crate::output::{json_line, print};

/// Bring an older store up to date.
///
/// Every command that opens a store does so by itself; this one says from which version to which. A newer
/// store is never changed.
#[derive(clap::Args)]
pub(super) struct Migrate {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Migrate {
    pub(super) fn run(self, path: &Path) -> anyhow::Result<ExitCode> {
        let versions = maintain::versions(path)?;
        drop(Sqlite::open(path)?);
        let (from, to) = (versions.found, versions.known);
        let line = if self.json {
            json_line(&json!({"store": path.to_string_lossy(), "from": from, "to": to}))
        } else if from == to {
            format!("{} is up to date: version {to}\n", shown(path))
        } else {
            format!("{} went from version {from} to {to}\n", shown(path))
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
