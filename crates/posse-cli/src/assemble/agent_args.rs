//! Flags for what agents may do and use, shared by the commands that run agents and those that
//! host them.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use posse_protocol::{Cost, PermissionMode, UnknownMode};
use posse_runtime::govern::budget::Budget;
use posse_runtime::live::setup::{Approver, Limits};

use super::on_question::{OnQuestion, PATIENCE};
use super::profile_args::PROGRAMS;
use super::provider::ProviderArgs;
use super::rules;
use super::run_config::{ProcessPurpose, RunConfig, SessionChoice, SessionFlags};
use super::servers::ServerArgs;
use crate::config::search_paths::SettingSources;
use crate::config::settings;
use crate::config::settings::agents::{AgentFlags, BudgetError};
use crate::config::store::StoreArgs;
use crate::definitions::{InlineAgents, InlineAgentsError};
use crate::error::usage::UsageError;
use crate::output::tame;

/// What agents may do and may use.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    pub(crate) provider: ProviderArgs,
    /// What the agent may do without asking: plan, default, acceptEdits, dontAsk or
    /// bypassPermissions
    #[arg(long, value_name = "MODE", value_parser = permission_mode)]
    pub(crate) permission_mode: Option<ModeArg>,
    /// Tool calls to allow without asking, such as `Bash(git diff *),Edit`; can be repeated
    #[arg(long, visible_alias = "allowedTools", value_name = "RULES", value_parser = rules::allowing)]
    pub(crate) allowed_tools: Vec<Vec<String>>,
    /// Tool calls to deny; can be repeated
    #[arg(long, visible_alias = "disallowedTools", value_name = "RULES", value_parser = rules::denying)]
    pub(crate) disallowed_tools: Vec<Vec<String>>,
    /// The only tools agents may use, such as `Read,Bash`; "" for none, `default` for all
    #[arg(long, value_name = "NAMES", help_heading = PROGRAMS, hide_short_help = true)]
    pub(crate) tools: Option<String>,
    /// More settings, as JSON or in a file; they precede those of the user and the repository
    #[arg(long, value_name = "FILE or JSON", value_parser = super::config_value::json_or_file, help_heading = PROGRAMS, hide_short_help = true)]
    pub(crate) settings: Option<String>,
    /// Which files to read, of user, project, local; "" for none [default: all]
    #[arg(long, value_name = "SOURCES", help_heading = PROGRAMS, hide_short_help = true)]
    pub(crate) setting_sources: Option<SettingSources>,
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Additional directory that file tools may use; can be repeated
    #[arg(long, value_name = "DIR", value_parser = directory)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Use all agents, skills, instructions and settings of this directory's repository, in this run
    /// only; `posse trust` shows what there is
    #[arg(long)]
    pub(crate) trust: bool,
    /// Maximum cost in dollars from now on, including sub-agents; calls that could exceed it are
    /// not made
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub(crate) max_budget_usd: Option<Cost>,
    /// Maximum number of tokens, in and out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_budget_tokens: Option<u64>,
    /// Maximum time in seconds; no calls are made after it
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1))]
    pub(crate) max_time: Option<u64>,
    /// Maximum length of a reply, in tokens [default: 32000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
    /// Additional agent types, {"NAME": {"description": …, "prompt": …}}; or @FILE
    #[arg(long, value_name = "JSON")]
    pub(crate) agents: Option<String>,
    /// Maximum number of agents that work at once; others wait [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_agents: Option<u32>,
    /// Maximum depth of agents that start agents; 0 for none [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<u32>,
    /// Run nothing in the background: wait for every sub-agent
    #[arg(long, conflicts_with = "auto_background")]
    pub(crate) no_background: bool,
    /// Move a sub-agent to the background after waiting this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1))]
    pub(crate) auto_background: Option<u64>,
    /// What to do when a tool call needs approval: `wait`, `wait=TIME` (such as 90s, 10m or 2h) or
    /// `deny`; `posse requests` answers what waits. Without it, you are asked on a terminal
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_question: Option<OnQuestion>,
}

impl AgentArgs {
    /// Returns the agent types that the command line itself defines.
    pub(crate) fn given(&self, path: &[&'static str]) -> Result<InlineAgents, UsageError> {
        let given = self.agents.as_deref().map(InlineAgents::read).transpose();
        let wrong = |error: InlineAgentsError| {
            UsageError::new(path, ErrorKind::ValueValidation, tame(&error.to_string()))
        };
        given.map(Option::unwrap_or_default).map_err(wrong)
    }

    /// Returns true if a flag names a model.
    pub(crate) fn names_model(&self) -> bool {
        self.provider.flagged().is_some()
    }

    /// Returns the run configuration of these flags, for the given session.
    pub(crate) fn run_config(
        &self,
        which: Option<SessionChoice>,
        store: StoreArgs,
        given: InlineAgents,
    ) -> RunConfig {
        RunConfig {
            which,
            fork: None,
            team: None,
            lead: None,
            provider: self.provider.clone(),
            mode: self.permission_mode.as_ref().and_then(ModeArg::known),
            allow: self.allowed_tools.concat(),
            deny: self.disallowed_tools.concat(),
            flags: SessionFlags {
                foreign_mode: self.permission_mode.as_ref().and_then(ModeArg::foreign),
                tools: self.tools.as_deref().and_then(tool_names),
                settings: self.settings.clone(),
                sources: self.setting_sources.unwrap_or_default(),
                servers: self.servers.flags(),
                trusts: self.trust,
                ..SessionFlags::default()
            },
            add_dir: self.add_dir.clone(),
            limits: Limits {
                budget: Budget {
                    cost: self.max_budget_usd,
                    tokens: self.max_budget_tokens,
                    turns: None,
                    time: self.max_time.map(Duration::from_secs),
                },
                max_tokens: self.max_tokens.unwrap_or(Limits::default().max_tokens),
                ..Limits::default()
            },
            agents: AgentFlags {
                depth: self.max_depth,
                running: self.max_agents.map(|agents| agents as usize),
                no_background: self.no_background,
                auto_background: self.auto_background.map(Duration::from_secs),
            },
            given,
            system_prompt: None,
            append_system_prompt: None,
            // Members in panes and workers; a session of its own overrides this.
            approver: self
                .on_question
                .map_or(Approver::Anyone(PATIENCE), Into::into),
            backend: None,
            purpose: ProcessPurpose::Job,
            store,
            verbose: false,
        }
    }
}

/// Parses a number of seconds, at most a year.
pub(crate) fn seconds(least: u64) -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(least..=365 * 24 * 60 * 60)
}

/// A permission mode on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModeArg {
    Known(PermissionMode),
    /// A mode of another program, which counts as `default`.
    Foreign(&'static str),
}

/// Modes of other programs that posse does not have.
const FOREIGN_MODES: [&str; 3] = ["auto", "manual", "bubble"];

impl ModeArg {
    /// Returns the mode if posse has it.
    fn known(&self) -> Option<PermissionMode> {
        match self {
            Self::Known(mode) => Some(*mode),
            Self::Foreign(_) => None,
        }
    }

    /// Returns the word if it is another program's.
    fn foreign(&self) -> Option<&'static str> {
        match self {
            Self::Known(_) => None,
            Self::Foreign(word) => Some(word),
        }
    }
}

/// Parses a permission mode.
fn permission_mode(word: &str) -> Result<ModeArg, UnknownMode> {
    let foreign = FOREIGN_MODES.into_iter().find(|known| *known == word);
    match foreign {
        Some(word) => Ok(ModeArg::Foreign(word)),
        None => word.parse().map(ModeArg::Known),
    }
}

/// Returns the names of `--tools`; `None` for all tools.
fn tool_names(list: &str) -> Option<Vec<String>> {
    let words = list.split([',', ' ']).filter(|word| !word.is_empty());
    let names: Vec<String> = words
        .map(|word| if word == "Task" { "Agent" } else { word })
        .map(str::to_owned)
        .collect();
    (!names.iter().any(|name| name == "default")).then_some(names)
}

/// Returns an existing directory, resolved against the directory posse was started in: the
/// session may work elsewhere.
fn directory(text: &str) -> Result<PathBuf, DirectoryError> {
    match std::fs::canonicalize(text) {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(DirectoryError::NotADirectory),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(DirectoryError::Missing),
        Err(error) => Err(error.into()),
    }
}

/// Why a path cannot be used as an additional directory.
#[derive(Debug, thiserror::Error)]
enum DirectoryError {
    #[error("it does not exist")]
    Missing,
    #[error("it is not a directory")]
    NotADirectory,
    #[error(transparent)]
    Unreadable(#[from] std::io::Error),
}

/// Parses an amount in dollars.
fn dollars(text: &str) -> Result<Cost, BudgetError> {
    let dollars: f64 = text.parse().map_err(|_| BudgetError::NotANumber)?;
    settings::agents::dollars(dollars)
}
