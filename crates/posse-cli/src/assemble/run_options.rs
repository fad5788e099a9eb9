//! The flags of commands that run agents and then end.

use std::time::Duration;

use clap::ValueEnum;
use clap::error::ErrorKind;
use posse_runtime::live::setup::{Approver, Limits};

use super::agent_args::{AgentArgs, seconds};
use super::profile_args::ProfileArgs;
use super::run_config::{RunConfig, SessionChoice, SessionFlags};
use crate::config::caller;
use crate::config::settings::teams::Backend;
use crate::config::store::StoreArgs;
use crate::config::unsupported::WithoutGuards;
use crate::definitions::InlineAgents;
use crate::error::usage::UsageError;

/// How agents work, and how that is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// Format of the output [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) output_format: Option<OutputFormat>,
    /// Format of the input; stream-json: one JSON object per line, answered during the run
    /// [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) input_format: Option<InputFormat>,
    #[command(flatten)]
    pub(crate) lines: IncludedLines,
    #[command(flatten)]
    pub(crate) terms: AgentArgs,
    /// Maximum number of model calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Stop background work when none of it has ended for this many seconds [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = seconds(0), conflicts_with = "no_background")]
    pub(crate) background_wait: Option<u64>,
    /// Where teammates run [default: in-process]
    #[arg(long, value_enum, value_name = "WHERE")]
    team_backend: Option<Backend>,
    /// System prompt to use instead of posse's own
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    /// Text to append to the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// Fail if hooks that check calls cannot run
    #[arg(long)]
    require_hooks: bool,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Report progress on stderr even if it is not a terminal
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// What is printed beside the usual lines.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct IncludedLines {
    /// With stream-json: also print replies as they arrive
    #[arg(long)]
    pub(crate) include_partial_messages: bool,
    /// With stream-json: also print which hooks run, and what they say
    #[arg(long)]
    pub(crate) include_hook_events: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The last reply.
    #[default]
    Text,
    /// One object at the end.
    Json,
    /// One object per line, during the run.
    StreamJson,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// A prompt.
    #[default]
    Text,
    /// One object per line.
    StreamJson,
}

impl RunOptions {
    /// Checks combinations that clap cannot express. `path` is the command that the flags belong
    /// to.
    pub(crate) fn check(&self, path: &[&'static str]) -> Result<(), UsageError> {
        let wrong = |what: &str| Err(UsageError::new(path, ErrorKind::ArgumentConflict, what));
        let lines_out = self.output_format() == OutputFormat::StreamJson;
        if self.by_lines() && !lines_out {
            return wrong("--input-format stream-json needs --output-format stream-json");
        }
        if self.profile.permission_prompt_tool.is_some() && !self.by_lines() {
            return wrong("--permission-prompt-tool stdio needs --input-format stream-json");
        }
        if self.lines.include_partial_messages && !lines_out {
            return wrong("--include-partial-messages needs --output-format stream-json");
        }
        if self.lines.include_hook_events && !lines_out {
            return wrong("--include-hook-events needs --output-format stream-json");
        }
        Ok(())
    }

    /// Returns the agent types that the command line itself defines.
    pub(crate) fn given(&self, path: &[&'static str]) -> Result<InlineAgents, UsageError> {
        self.terms.given(path)
    }

    /// Returns the run configuration of these flags, for the given session.
    pub(crate) fn run_config(
        &self,
        which: Option<SessionChoice>,
        store: StoreArgs,
        given: InlineAgents,
    ) -> RunConfig {
        let config = self.terms.run_config(which, store, given);
        RunConfig {
            limits: Limits {
                turns: self.max_turns,
                ..config.limits
            },
            backend: self.team_backend,
            mode: config.mode.or_else(|| match config.flags.foreign_mode {
                Some(_) => None,
                None => self.profile.mode(),
            }),
            flags: SessionFlags {
                profile: self.profile.clone(),
                without_guards: match self.require_hooks {
                    true => WithoutGuards::Fails,
                    false => WithoutGuards::Tells,
                },
                ..config.flags
            },
            system_prompt: self.system_prompt.clone(),
            append_system_prompt: self.append_system_prompt.clone(),
            // Only a program that sends lines can answer a request for approval, unless an agent
            // has started it. Others answer only if questions are to wait for them.
            approver: match self.terms.on_question {
                Some(on_question) => on_question.into(),
                None if self.by_lines() && caller::is_person() => Approver::FrontEnd,
                None => Approver::Nobody,
            },
            verbose: self.verbose,
            ..config
        }
    }

    /// Returns how long to wait for background runs while none of them ends.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.background_wait.unwrap_or(600))
    }

    /// Returns true if prompts and answers come as lines of JSON.
    pub(crate) fn by_lines(&self) -> bool {
        self.input_format == Some(InputFormat::StreamJson)
    }

    pub(crate) fn output_format(&self) -> OutputFormat {
        self.output_format.unwrap_or_default()
    }
}
