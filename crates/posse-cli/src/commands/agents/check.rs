//! `posse agents check`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::definitions::AgentSources;
use crate::present::definitions;

/// Check definitions of agents: `file:line: error: reason`, a line each.
///
/// An error keeps a definition from being loaded, a warning changes what it means, a note is good to know.
/// Exits with 1 if there are errors.
#[derive(clap::Args)]
pub(super) struct CheckAgents {
    /// Files and directories; without any, all that are looked at here
    paths: Vec<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl CheckAgents {
    pub(super) fn run(self, sources: &AgentSources) -> anyhow::Result<ExitCode> {
        definitions::check(sources, &self.paths, self.json)
    }
}
