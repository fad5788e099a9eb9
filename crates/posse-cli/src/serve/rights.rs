//! What a server may do: what it was started with. A call can ask for less, never for more.

use std::path::PathBuf;

use clap::error::ErrorKind;
use posse_protocol::{Cost, PermissionMode};

use super::allowance::Allowance;
use crate::assemble::run_config::{RunConfig, SessionChoice};
use crate::assemble::run_options::{OutputFormat, RunOptions};
use crate::config::settings::{FlagSettings, Settings};
use crate::config::store::StoreArgs;
use crate::config::{caller, environment};
use crate::error::usage::UsageError;

/// The command, for usage errors.
const PATH: [&str; 2] = ["mcp", "serve"];

/// What a server was started with.
pub(crate) struct ServerRights {
    options: RunOptions,
    pub(super) store: StoreArgs,
    /// The directory that it is for.
    pub(super) cwd: PathBuf,
    /// The mode of its runs. A session that is continued does not bring its own, which may allow
    /// more.
    pub(super) mode: PermissionMode,
    /// The money of all runs together.
    pub(super) allowance: Allowance,
    /// No agent's command has started it, and so it may do what only a person can.
    pub(super) is_person: bool,
}

/// What a call of `run` asks to be held to.
#[derive(Clone, Debug, Default)]
pub(super) struct NarrowerTerms {
    pub(super) which: Option<SessionChoice>,
    pub(super) cost: Option<Cost>,
    pub(super) turns: Option<u32>,
    /// Read and plan only.
    pub(super) plan: bool,
}

impl ServerRights {
    /// Fixes what the command line asks for, for all calls.
    pub(crate) fn new(options: RunOptions, store: StoreArgs) -> anyhow::Result<Self> {
        if options.output_format.is_some() || options.input_format.is_some() {
            let what = "posse mcp serve speaks MCP: --output-format and --input-format are for -p";
            anyhow::bail!(UsageError::new(&PATH, ErrorKind::ArgumentConflict, what));
        }
        options.check(&PATH)?;
        let config = options.run_config(None, store.clone(), options.given(&PATH)?);
        let cwd = environment::working_directory()?;
        let flags = FlagSettings {
            mode: config.mode,
            foreign_mode: config.flags.foreign_mode,
            settings: config.flags.settings.clone(),
            ..FlagSettings::default()
        };
        let mode = Settings::load(&config.search_paths(&cwd), flags)?.mode;
        Ok(Self {
            allowance: Allowance::new(options.terms.max_budget_usd),
            options,
            store,
            cwd,
            mode,
            is_person: caller::is_person(),
        })
    }

    /// Returns the options and the configuration of a run, which are at most as wide as those of the
    /// server.
    pub(super) fn of_run(
        &self,
        terms: &NarrowerTerms,
    ) -> Result<(RunOptions, RunConfig), UsageError> {
        let mut options = self.options.clone();
        // Its last line is an object with all that a client is told.
        options.output_format = Some(OutputFormat::Json);
        options.terms.max_budget_usd = terms.cost;
        options.max_turns = self.options.max_turns.into_iter().chain(terms.turns).min();
        let given = options.given(&PATH)?;
        let mut config = options.run_config(terms.which.clone(), self.store.clone(), given);
        config.mode = Some(match terms.plan {
            true => PermissionMode::Plan,
            false => self.mode,
        });
        config.flags.foreign_mode = None;
        Ok((options, config))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn rights(arguments: &[&str]) -> anyhow::Result<ServerRights> {
        let words = [&["posse", "-p", "x", "--setting-sources", ""], arguments].concat();
        let args = crate::Args::try_parse_from(words).unwrap();
        ServerRights::new(args.run.options, StoreArgs::default())
    }

    fn of_run(rights: &ServerRights, terms: NarrowerTerms) -> RunConfig {
        rights.of_run(&terms).unwrap().1
    }

    // proves MC-13 (part: rights)
    #[test]
    fn a_call_narrows_and_never_widens() {
        let flags = [
            "--permission-mode",
            "acceptEdits",
            "--max-turns",
            "5",
            "--allowedTools",
            "Bash",
        ];
        let rights = rights(&flags).unwrap();
        let wide = NarrowerTerms {
            turns: Some(50),
            ..NarrowerTerms::default()
        };
        let config = of_run(&rights, wide);
        assert_eq!(config.limits.turns, Some(5));
        assert_eq!(config.mode, Some(PermissionMode::AcceptEdits));
        let narrow = NarrowerTerms {
            turns: Some(2),
            plan: true,
            cost: Some(Cost::from_pico_usd(7)),
            ..NarrowerTerms::default()
        };
        let config = of_run(&rights, narrow);
        assert_eq!(config.limits.turns, Some(2));
        assert_eq!(config.mode, Some(PermissionMode::Plan));
        assert_eq!(config.limits.budget.cost, Some(Cost::from_pico_usd(7)));
        assert_eq!(config.allow, ["Bash"]);
    }

    // proves MC-13 (part: rights)
    #[test]
    fn a_session_that_is_continued_brings_no_mode() {
        let rights = rights(&[]).unwrap();
        let terms = NarrowerTerms {
            which: Some(SessionChoice::Id("1".into())),
            ..NarrowerTerms::default()
        };
        assert_eq!(of_run(&rights, terms).mode, Some(PermissionMode::Default));
    }

    #[test]
    fn formats_of_other_front_ends_are_refused() {
        let error = rights(&["--output-format", "json"]).err().unwrap();
        assert!(error.to_string().contains("speaks MCP"), "{error}");
    }
}
