//! `posse team check`.

use std::process::ExitCode;

use posse_protocol::Name;

use crate::assemble::open::workspace;
use crate::assemble::team_terms;
use crate::config::settings::{FlagSettings, Settings};
use crate::definitions::teams::{TeamSources, about};
use crate::definitions::{InlineAgents, Remark, Severity};
use crate::error::Advised;
use crate::present::definitions::report;

/// Check team declarations: `file:line: error: reason`, one per line.
///
/// An error prevents a team from running, a warning changes what it means. Exits with 1 if there
/// are errors.
#[derive(clap::Args)]
pub(super) struct CheckTeams {
    /// Team to check [default: all that are declared here]
    name: Option<Name>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl CheckTeams {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let sources = TeamSources::at(
            &crate::config::environment::working_directory()?,
            InlineAgents::default(),
        );
        let mut loaded = sources.load();
        if let Some(name) = &self.name {
            loaded.known.retain(|known| known.definition.name == *name);
            loaded
                .shadowed
                .retain(|known| known.definition.name == *name);
            loaded
                .remarks
                .retain(|remark| about(remark) == Some(name.as_str()));
            if loaded.known.is_empty() && loaded.remarks.is_empty() {
                anyhow::bail!(Advised {
                    what: format!("no team {name} is declared here"),
                    advice: format!(
                        "`posse team list --declared` shows all; .posse/teams/{name}.toml declares \
                         one"
                    ),
                });
            }
        }
        // With the settings of a run without flags.
        let settings = Settings::at(sources.cwd(), FlagSettings::default())?;
        let workspace = workspace(&settings, sources.cwd().to_owned())?;
        for team in &loaded.known {
            let Some(path) = &team.path else { continue };
            let told = team_terms::capped(&team.definition.plan, &settings, &workspace);
            loaded.remarks.extend(told.into_iter().map(|reason| Remark {
                weight: Severity::Note,
                path: path.clone(),
                line: None,
                reason,
            }));
        }
        report(&loaded, sources.cwd(), "teams", self.json)
    }
}
