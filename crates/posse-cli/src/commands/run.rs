//! `posse -p`: an agent without a screen.

mod drive;
mod exchange;
mod face;
mod input;
mod lines;
#[cfg(test)]
mod made;
mod open;
mod partial;
mod progress;
mod question;
mod result;
mod rules;
mod runs;
mod shape;
mod slash;
mod speaker;
mod stdin;
mod stop;
mod tasks;
mod text;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory, ValueEnum};
use posse_protocol::{Cost, Outcome, PermissionMode};
use posse_runtime::port::clock::SystemClock;
use posse_runtime::{Agent, Asker, Budget, Limits};
use serde_json::json;

pub(crate) use self::drive::Signals;
use self::exchange::{Ending, Exchange, Plan};
use self::face::Face;
use self::lines::Lines;
use self::open::{Opened, Which, Wish};
use self::text::Text;
use crate::definitions::Given;
use crate::hint::{self, Advised};
use crate::output::{json_line, print};
use crate::provider::ProviderArgs;
use crate::session::{AgentFlags, Facts};
use crate::store::StoreArgs;

/// An agent that works on what it is told and then ends: `posse -p "fix the failing test"`.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Run an agent")]
pub(crate) struct Run {
    /// What to do; without it, or with `-`, it is read from standard input. What is piped in beside it
    /// follows it
    prompt: Option<String>,
    /// Words after the prompt, which are a mistake
    #[arg(hide = true)]
    rest: Vec<String>,
    /// Work without a screen: print the result and end
    #[arg(short, long)]
    print: bool,
    /// How the result is given [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    output_format: Option<OutputFormat>,
    /// How prompts come; stream-json: one JSON object per line, answered while it goes on [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    input_format: Option<InputFormat>,
    /// With stream-json: also show replies while they arrive
    #[arg(long)]
    include_partial_messages: bool,
    #[command(flatten)]
    provider: ProviderArgs,
    /// How far the agent may go by itself
    #[arg(long, value_name = "MODE", value_parser = modes())]
    permission_mode: Option<PermissionMode>,
    /// Calls that need not be asked about, `Bash(git diff *),Edit` for one; can be repeated
    #[arg(long, visible_alias = "allowedTools", value_name = "RULES", value_parser = rules::allowing)]
    allowed_tools: Vec<Vec<String>>,
    /// Calls that are never made; can be repeated
    #[arg(long, visible_alias = "disallowedTools", value_name = "RULES", value_parser = rules::denying)]
    disallowed_tools: Vec<Vec<String>>,
    /// Another directory that file tools may reach; can be repeated
    #[arg(long, value_name = "DIR", value_parser = directory)]
    add_dir: Vec<PathBuf>,
    /// Call the model so many times at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// Make no call that could bring the session over so many dollars from now on, sub-agents included
    #[arg(long, value_name = "X", value_parser = dollars)]
    max_budget_usd: Option<Cost>,
    /// The same in tokens, in and out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_budget_tokens: Option<u64>,
    /// Make no more calls after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1))]
    max_time: Option<u64>,
    /// The longest reply, in tokens [default: 32000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// More types of agents that can be started, {"NAME": {"description": …, "prompt": …}}; or @FILE
    #[arg(long, value_name = "JSON")]
    agents: Option<String>,
    /// Let so many agents work at once; more wait [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_agents: Option<u32>,
    /// Let agents start agents so deep; 0: none [default: 3]
    #[arg(long, value_name = "N")]
    max_depth: Option<u32>,
    /// Nothing goes on in the background: every sub-agent is waited for
    #[arg(long, conflicts_with_all = ["auto_background", "background_wait"])]
    no_background: bool,
    /// A sub-agent that is waited for moves to the background after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1))]
    auto_background: Option<u64>,
    /// Wait for what goes on in the background until none of it has ended for so many seconds, then stop it
    /// [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = seconds(0))]
    background_wait: Option<u64>,
    /// A system prompt in place of posse's own
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// More for the system prompt
    #[arg(long, value_name = "TEXT")]
    append_system_prompt: Option<String>,
    /// Go on with the newest session of this directory
    #[arg(short, long = "continue")]
    continue_newest: bool,
    /// Go on with a session; the beginning of its id will do
    #[arg(short, long, value_name = "ID", conflicts_with = "continue_newest")]
    resume: Option<String>,
    /// With --continue or --resume: leave that session as it is and go on in a copy
    #[arg(long)]
    fork_session: bool,
    /// Where everything is kept, sqlite:PATH [default: posse.db in posse's home]
    #[arg(long, value_name = "STORE", value_parser = crate::store::parse)]
    store: Option<PathBuf>,
    /// Tell on stderr what happens, also where no person looks on
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// The last reply.
    #[default]
    Text,
    /// One object at the end.
    Json,
    /// One object per line, while it goes on.
    StreamJson,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    /// A prompt.
    #[default]
    Text,
    /// One object per line.
    StreamJson,
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let given = self.check().and_then(|()| self.given()).unwrap_or_else(|error| error.exit());
        let runtime = super::runtime()?;
        let result = runtime.block_on(self.work(given));
        // Whatever still waits in a thread, for a line that never comes for one, is not waited for.
        runtime.shutdown_background();
        if let Err(error) = &result
            && !hint::is_broken_pipe(error)
            && self.output_format() != OutputFormat::Text
        {
            let line = json!({
                "type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0,
                "errors": [format!("{error:#}")], "terminal_reason": "failed", "uuid": uuid::Uuid::now_v7(),
            });
            print(json_line(&line).as_bytes())?;
        }
        result
    }

    /// What the grammar of the command line cannot say.
    fn check(&self) -> Result<(), clap::Error> {
        let wrong = |what: &str| Err(crate::Args::command().error(ErrorKind::ArgumentConflict, what));
        if !self.print {
            let what = "posse has no screen of its own yet: add -p to have the result printed";
            return Err(crate::Args::command().error(ErrorKind::MissingRequiredArgument, what));
        }
        if let (Some(prompt), [next, ..]) = (&self.prompt, &self.rest[..]) {
            let what = format!("the prompt is one argument: quote it, \"{prompt} {next} …\"");
            return Err(crate::Args::command().error(ErrorKind::TooManyValues, what));
        }
        let lines_out = self.output_format() == OutputFormat::StreamJson;
        if self.input_format() == InputFormat::StreamJson && !lines_out {
            return wrong("--input-format stream-json needs --output-format stream-json");
        }
        if self.input_format() == InputFormat::StreamJson && self.prompt.is_some() {
            return wrong("with --input-format stream-json prompts come by standard input only");
        }
        if self.include_partial_messages && !lines_out {
            return wrong("--include-partial-messages needs --output-format stream-json");
        }
        if self.fork_session && self.which().is_none() {
            return wrong("--fork-session needs --continue or --resume");
        }
        Ok(())
    }

    /// The types of agents that are defined by the command line itself.
    fn given(&self) -> Result<Given, clap::Error> {
        let given = self.agents.as_deref().map(Given::read).transpose();
        let wrong =
            |why: String| crate::Args::command().error(ErrorKind::ValueValidation, crate::output::tame(&why));
        given.map(Option::unwrap_or_default).map_err(wrong)
    }

    async fn work(&self, given: Given) -> anyhow::Result<ExitCode> {
        let by_lines = self.input_format() == InputFormat::StreamJson;
        let words =
            if by_lines { None } else { stdin::prompt(self.prompt.as_deref(), self.which().is_none())? };
        if words.is_none() && !by_lines && self.which().is_none() {
            anyhow::bail!(Advised {
                what: "there is no prompt".into(),
                advice: "posse -p \"explain what this project does\"".into(),
            });
        }
        let Opened { runtime, agent, facts, store, live, skills, slash, swept } =
            open::open(self.wish(given)).await?;
        let Agent { handle, mut events, unfinished, .. } = agent;
        let first = match words {
            Some(words) => Some(slash.read(words).map_err(no_command)?),
            None if by_lines => None,
            None if unfinished => Some(posse_protocol::Command::Continue),
            None => anyhow::bail!(Advised {
                what: format!("session {} has nothing left to do", facts.session),
                advice: "tell it something: posse -p --resume ID \"and now the tests\"".into(),
            }),
        };
        let session = facts.short.clone();
        let plan = Plan {
            main: facts.session,
            first,
            listening: by_lines,
            started_in: facts.mode,
            patience: Duration::from_secs(self.background_wait.unwrap_or(600)),
            slash,
        };
        let exchange = Exchange::new(self.face(facts), plan);
        let (clock, lines) = (SystemClock::default(), by_lines.then(stdin::lines));
        let stopping = stop::when_told(store);
        tokio::pin!(stopping);
        let _watching = (live.watch(), skills.watch());
        let ending = tokio::select! {
            ending = drive::drive(exchange, handle, &mut events, lines, swept, &clock) => ending,
            Err(error) = &mut stopping => Err(error),
        };
        if !matches!(&ending, Ok(Ending { at_once: true, .. })) {
            // Events are read on, so that the agent does not wait for us while we wait for it.
            let drain = async { while events.recv().await.is_some() {} };
            drive::unless_signalled(async { tokio::join!(runtime.shut_down(), drain) }).await?;
        }
        Ok(finish(&ending?, &session))
    }

    fn face(&self, facts: Facts) -> Face {
        let person = std::io::stderr().is_terminal();
        match self.output_format() {
            OutputFormat::Text => {
                Face::Text(Text::new(facts, std::io::stdout().is_terminal(), person || self.verbose))
            }
            OutputFormat::Json => Face::Json(facts),
            OutputFormat::StreamJson => Face::Lines(Lines::new(facts, self.include_partial_messages)),
        }
    }

    fn wish(&self, given: Given) -> Wish {
        Wish {
            which: self.which(),
            fork: self.fork_session,
            provider: self.provider.clone(),
            mode: self.permission_mode,
            allow: self.allowed_tools.concat(),
            deny: self.disallowed_tools.concat(),
            add_dir: self.add_dir.clone(),
            limits: Limits {
                turns: self.max_turns,
                budget: Budget {
                    cost: self.max_budget_usd,
                    tokens: self.max_budget_tokens,
                    turns: None,
                    time: self.max_time.map(Duration::from_secs),
                },
                max_tokens: self.max_tokens.unwrap_or(32_000),
                compact_at: None,
            },
            agents: AgentFlags {
                depth: self.max_depth,
                running: self.max_agents.map(|agents| agents as usize),
                no_background: self.no_background,
                auto_background: self.auto_background.map(Duration::from_secs),
            },
            given,
            system_prompt: self.system_prompt.clone(),
            append_system_prompt: self.append_system_prompt.clone(),
            asker: match self.input_format() {
                InputFormat::StreamJson => Asker::FrontEnd,
                InputFormat::Text => Asker::Nobody,
            },
            store: StoreArgs { store: self.store.clone() },
            verbose: self.verbose,
        }
    }

    fn which(&self) -> Option<Which> {
        self.resume.clone().map(Which::Id).or_else(|| self.continue_newest.then_some(Which::Newest))
    }

    fn output_format(&self) -> OutputFormat {
        self.output_format.unwrap_or_default()
    }

    fn input_format(&self) -> InputFormat {
        self.input_format.unwrap_or_default()
    }
}

/// A prompt that looks like a command and is none.
fn no_command(what: String) -> Advised {
    let advice = "`posse skills list` tells what can be called; a word before the slash makes it a prompt";
    Advised { what, advice: advice.into() }
}

/// Says what went wrong, if anything did, and gives the exit code.
fn finish(ending: &Ending, session: &str) -> ExitCode {
    let code = match &ending.last {
        Some(end) => {
            match (&end.outcome, result::complaint(&end.outcome)) {
                (Outcome::Interrupted, _) => crate::output::say("interrupted"),
                (outcome, Some(complaint)) => {
                    hint::tell(&complaint, result::advice(outcome, session).as_deref());
                }
                (_, None) => {}
            }
            result::exit_code(&end.outcome)
        }
        None => 0,
    };
    match code {
        _ if ending.interrupted => ExitCode::from(hint::INTERRUPTED),
        0 if ending.not_understood => ExitCode::from(hint::FAILED),
        0 if ending.gave_up => ExitCode::from(hint::LIMITED),
        code => ExitCode::from(code),
    }
}

fn modes() -> impl TypedValueParser<Value = PermissionMode> {
    PossibleValuesParser::new(PermissionMode::ALL.map(PermissionMode::as_str))
        .try_map(|word| word.parse::<PermissionMode>())
}

/// A directory that is there; it is meant from where posse was started, wherever the session works.
fn directory(text: &str) -> Result<PathBuf, String> {
    match std::fs::canonicalize(text) {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err("it is no directory".into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err("it does not exist".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn dollars(text: &str) -> Result<Cost, String> {
    let dollars: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    crate::settings::agents::dollars(dollars).map_err(str::to_owned)
}

/// Some seconds, and at most a year.
fn seconds(least: u64) -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(least..=365 * 24 * 60 * 60)
}

#[cfg(test)]
mod tests;
