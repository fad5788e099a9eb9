//! `posse skills check`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::definitions::skills::SkillSources;
use crate::present::definitions;

/// Check skills and commands: `file:line: error: reason`, a line each.
///
/// An error keeps a skill from being loaded, a warning changes what it means, a note is good to know. Exits with 1
/// if there are errors.
#[derive(clap::Args)]
pub(super) struct CheckSkills {
    /// Files and directories; without any, all that are looked at here
    paths: Vec<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl CheckSkills {
    pub(super) fn run(self, sources: &SkillSources) -> anyhow::Result<ExitCode> {
        definitions::check(sources, &self.paths, self.json)
    }
}
