//! `posse man`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::help::man;
use crate::output::print_exactly;

/// Write manual pages, for people who make packages: posse.1, posse-team.1 and so on.
#[derive(clap::Args)]
pub(crate) struct ManCommand {
    /// Directory to write to; created if missing [default: print posse.1]
    dir: Option<PathBuf>,
}

impl ManCommand {
    /// Writes the pages of `posse`, the whole command line.
    pub(crate) fn run(self, posse: clap::Command) -> anyhow::Result<ExitCode> {
        let pages = man::pages(posse);
        let Some(dir) = self.dir else {
            let first = pages.first().map(|page| page.text.as_str());
            print_exactly(first.unwrap_or_default())?;
            return Ok(ExitCode::SUCCESS);
        };
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        for page in &pages {
            let path = dir.join(format!("{}.1", page.name));
            std::fs::write(&path, &page.text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
