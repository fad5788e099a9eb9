//! The flags of whatever has agents work and then ends.

use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use posse_runtime::live::setup::{Asker, Limits};

use super::open::{Which, Wish};
use super::terms::Terms;
use crate::assemble::facts::Facts;
use crate::config::settings::teams::Backend;
use crate::config::store::StoreArgs;
use crate::definitions::Given;
use crate::error::usage::complaint;
use crate::headless::render::Face;
use crate::headless::render::json_lines::Lines;
use crate::headless::render::text::Text;

/// How agents work, and how that is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How the result is given [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) output_format: Option<OutputFormat>,
    /// How prompts come; stream-json: one JSON object per line, answered while it goes on [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) input_format: Option<InputFormat>,
    /// With stream-json: also show replies while they arrive
    #[arg(long)]
    pub(crate) include_partial_messages: bool,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Call the model so many times at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Wait for what goes on in the background until none of it has ended for so many seconds, then stop it
    /// [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = seconds(0), conflicts_with = "no_background")]
    pub(crate) background_wait: Option<u64>,
    /// Where teammates run [default: in-process]
    #[arg(long, value_enum, value_name = "WHERE")]
    team_backend: Option<Backend>,
    /// A system prompt in place of posse's own
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    /// More for the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// Tell on stderr what happens, also where no person looks on
    #[arg(long)]
    pub(crate) verbose: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The last reply.
    #[default]
    Text,
    /// One object at the end.
    Json,
    /// One object per line, while it goes on.
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

impl Options {
    /// What the grammar of the command line cannot say. `path` is the command that they belong to.
    pub(crate) fn check(&self, path: &[&str]) -> Result<(), clap::Error> {
        let wrong = |what: &str| Err(complaint(path, ErrorKind::ArgumentConflict, what));
        let lines_out = self.output_format() == OutputFormat::StreamJson;
        if self.by_lines() && !lines_out {
            return wrong("--input-format stream-json needs --output-format stream-json");
        }
        if self.include_partial_messages && !lines_out {
            return wrong("--include-partial-messages needs --output-format stream-json");
        }
        Ok(())
    }

    /// The types of agents that are defined by the command line itself.
    pub(crate) fn given(&self, path: &[&str]) -> Result<Given, clap::Error> {
        self.terms.given(path)
    }

    /// What they ask for, in the session that is meant.
    pub(crate) fn wish(&self, which: Option<Which>, store: StoreArgs, given: Given) -> Wish {
        let wish = self.terms.wish(which, store, given);
        Wish {
            limits: Limits {
                turns: self.max_turns,
                ..wish.limits
            },
            backend: self.team_backend,
            system_prompt: self.system_prompt.clone(),
            append_system_prompt: self.append_system_prompt.clone(),
            asker: if self.by_lines() {
                Asker::FrontEnd
            } else {
                Asker::Nobody
            },
            verbose: self.verbose,
            ..wish
        }
    }

    /// How it is shown. A team's lead says its words at the end only: until then others have something to tell.
    pub(crate) fn face(&self, facts: Facts, team: bool) -> Face {
        let person = std::io::stderr().is_terminal();
        match self.output_format() {
            OutputFormat::Text => {
                let live = std::io::stdout().is_terminal() && !team;
                Face::Text(Text::new(facts, live, person || self.verbose))
            }
            OutputFormat::Json => Face::Json(facts),
            OutputFormat::StreamJson => {
                Face::Lines(Lines::new(facts, self.include_partial_messages))
            }
        }
    }

    /// How long background runs are waited for while nothing happens.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.background_wait.unwrap_or(600))
    }

    /// Whether prompts and answers come as lines.
    pub(crate) fn by_lines(&self) -> bool {
        self.input_format == Some(InputFormat::StreamJson)
    }

    pub(crate) fn output_format(&self) -> OutputFormat {
        self.output_format.unwrap_or_default()
    }
}

/// Some seconds, and at most a year.
pub(crate) fn seconds(least: u64) -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(least..=365 * 24 * 60 * 60)
}
