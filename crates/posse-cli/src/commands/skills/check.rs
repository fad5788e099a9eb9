//! `posse skills check`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::definitions::skills::SkillSources;
use crate::present::definitions;

/// Check skills and commands: `file:line: error: reason`, one per line.
///
/// An error prevents a skill from loading, a warning changes what it means, a note is for
/// information. Exits with 1 if there are errors.
#[derive(clap::Args)]
pub(super) struct CheckSkills {
    /// Files and directories to check [default: all that posse reads here]
    paths: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl CheckSkills {
    pub(super) fn run(self, sources: &SkillSources) -> anyhow::Result<ExitCode> {
        definitions::check(sources, &self.paths, self.json)
    }
}
