//! `posse agents check`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::definitions::AgentSources;
use crate::present::definitions;

/// Check agent definitions: `file:line: error: reason`, one per line.
///
/// An error prevents a definition from loading, a warning changes what it means, a note is for
/// information. Exits with 1 if there are errors.
#[derive(clap::Args)]
pub(super) struct CheckAgents {
    /// Files and directories to check [default: all that posse reads here]
    paths: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl CheckAgents {
    pub(super) fn run(self, sources: &AgentSources) -> anyhow::Result<ExitCode> {
        definitions::check(sources, &self.paths, self.json)
    }
}
