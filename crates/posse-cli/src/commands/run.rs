//! `posse -p`: runs an agent without a screen.

use std::process::ExitCode;

use clap::error::ErrorKind;
use posse_protocol::AgentId;
use posse_runtime::hook::Preparation;
use posse_runtime::session::branch::CopiedHistory;

use crate::assemble::profile_args::PROGRAMS;
use crate::assemble::run_config::{RunConfig, SessionChoice};
use crate::assemble::run_options::{OutputFormat, RunOptions};
use crate::config::store::StoreArgs;
use crate::definitions::InlineAgents;
use crate::error::usage::UsageError;
use crate::error::{self, Advised, USAGE};
use crate::headless::input::binary::BinaryInput;
use crate::headless::input::stdin;
use crate::headless::job::{self, FirstInput, RunJob};
use crate::headless::terminal;
use crate::interactive::{self, WantedSession};

/// Run an agent on a prompt until it is done: `posse -p "fix the failing test"`.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Run an agent")]
pub(crate) struct RunCommand {
    /// What to do; without it, or with `-`, it is read from standard input. With a prompt, piped
    /// input is appended to it
    prompt: Option<String>,
    /// Extra words after the prompt, which are an error
    #[arg(hide = true)]
    rest: Vec<String>,
    /// Run without interaction: print the result and exit
    #[arg(short, long)]
    print: bool,
    #[command(flatten)]
    screen: ScreenArgs,
    #[command(flatten)]
    stdin: StdinArgs,
    #[command(flatten)]
    preparation: PreparationArgs,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// Continue the newest session of this directory
    #[arg(short, long = "continue")]
    continue_newest: bool,
    /// Continue a session; a unique prefix of its ID is enough, and without one you choose from a list
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "continue_newest")]
    resume: Option<String>,
    /// With --continue or --resume: leave that session unchanged and continue in a copy
    #[arg(long)]
    fork_session: bool,
    /// With --fork-session: copy only up to this entry; `posse sessions show ID --json` numbers them
    #[arg(long, value_name = "ENTRY", requires = "fork_session")]
    at: Option<u64>,
    /// ID of the new session, a UUID that no session has
    #[arg(long, value_name = "UUID", help_heading = PROGRAMS, hide_short_help = true)]
    session_id: Option<AgentId>,
    /// Store to use, sqlite:PATH or postgres://USER@HOST/DATABASE [default: posse.db in posse's
    /// home]
    #[arg(long, value_name = "STORE", value_parser = crate::config::store::StoreParser)]
    pub(crate) store: Option<crate::config::store::StoreLocation>,
}

/// How a conversation looks.
#[derive(Clone, Debug, clap::Args)]
struct ScreenArgs {
    /// Talk in lines alone, without a live region: for screen readers and simple terminals
    #[arg(long, visible_alias = "screen-reader", conflicts_with = "print")]
    plain: bool,
}

/// What standard input may be.
#[derive(Clone, Debug, clap::Args)]
struct StdinArgs {
    /// Send piped input that is not text, with replacement characters for what is not UTF-8
    #[arg(long, hide_short_help = true)]
    binary: bool,
}

/// What a workspace is prepared for before the first prompt.
#[derive(Clone, Debug, clap::Args)]
struct PreparationArgs {
    /// Run Setup hooks with the trigger `init` before the first prompt
    #[arg(long, conflicts_with = "maintenance")]
    init: bool,
    /// Run Setup hooks with the trigger `maintenance` before the first prompt
    #[arg(long)]
    maintenance: bool,
}

impl PreparationArgs {
    fn wanted(&self) -> Option<Preparation> {
        match (self.init, self.maintenance) {
            (true, _) => Some(Preparation::First),
            (_, true) => Some(Preparation::Maintenance),
            _ => None,
        }
    }
}

impl RunCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // Before standard input is read: a person with a wrong flag need not type a prompt first.
        self.check()?;
        if self.resume.as_deref() == Some("") && (self.print || !terminal::is_there()) {
            return self.choose_and_run();
        }
        if !self.print && !self.options.by_lines() {
            return self.converse();
        }
        let given = self.options.given(&[])?;
        job::run(&self.options, || self.job(given))
    }

    /// Lets the person choose the session to continue. Where nobody can, sessions are listed.
    fn choose_and_run(mut self) -> anyhow::Result<ExitCode> {
        let store = StoreArgs {
            store: self.store.clone(),
        };
        let verb = if self.print {
            "posse -p --resume"
        } else {
            "posse --resume"
        };
        let prints_text = self.options.output_format() == OutputFormat::Text;
        if terminal::has_screen() && prints_text {
            return match interactive::choose_session(&store)? {
                Some(session) => {
                    self.resume = Some(session.to_string());
                    self.run()
                }
                None => Ok(ExitCode::SUCCESS),
            };
        }
        error::tell("--resume needs the ID of a session", None);
        if interactive::list_sessions(&store, verb)? == 0 {
            error::advise(
                "this directory has no session yet; `posse sessions list --all` shows all",
            );
        }
        Ok(ExitCode::from(USAGE))
    }

    /// Holds a conversation on the terminal.
    fn converse(self) -> anyhow::Result<ExitCode> {
        let config = |which: Option<SessionChoice>| {
            let given = self.options.given(&[])?;
            let mut config = self.run_config(given);
            if which != self.which() {
                // Another session than the command line names.
                config.fork = None;
                config.flags.session_id = None;
            }
            config.which = which;
            Ok(config)
        };
        let wanted = match self.resume.as_deref() {
            Some("") => WantedSession::Asked,
            _ => self.which().map_or(WantedSession::New, WantedSession::This),
        };
        interactive::run(config, wanted, self.prompt.clone(), self.screen.plain)
    }

    /// Returns the job to run.
    fn job(&self, given: InlineAgents) -> anyhow::Result<RunJob> {
        let by_lines = self.options.by_lines();
        let words = if by_lines {
            None
        } else {
            let binary = match self.stdin.binary {
                true => BinaryInput::Replaced,
                false => BinaryInput::Refused,
            };
            stdin::prompt(self.prompt.as_deref(), self.which().is_none(), binary)?
        };
        if words.is_none() && !by_lines && self.which().is_none() {
            anyhow::bail!(Advised {
                what: "there is no prompt".into(),
                advice: "posse -p \"explain what this project does\"".into(),
            });
        }
        Ok(RunJob {
            config: self.run_config(given),
            first: FirstInput::Words(words),
            starting: None,
            board: None,
        })
    }

    /// Checks combinations that clap cannot express.
    fn check(&self) -> Result<(), UsageError> {
        let wrong = |kind, what: &str| Err(UsageError::new(&[], kind, what));
        if let (Some(prompt), [next, ..]) = (&self.prompt, &self.rest[..]) {
            let what = format!("the prompt must be one argument: quote it, \"{prompt} {next} …\"");
            return wrong(ErrorKind::TooManyValues, &what);
        }
        if self.options.by_lines() && self.prompt.is_some() {
            return wrong(
                ErrorKind::ArgumentConflict,
                "with --input-format stream-json, prompts come from standard input only",
            );
        }
        if self.fork_session && self.which().is_none() {
            return wrong(
                ErrorKind::ArgumentConflict,
                "--fork-session needs --continue or --resume",
            );
        }
        if self.session_id.is_some() && self.which().is_some() {
            return wrong(
                ErrorKind::ArgumentConflict,
                "--session-id is for a new session: omit it, or --continue and --resume",
            );
        }
        self.options.check(&[])
    }

    fn run_config(&self, given: InlineAgents) -> RunConfig {
        let store = StoreArgs {
            store: self.store.clone(),
        };
        let mut config = self.options.run_config(self.which(), store, given);
        let copied = self.at.map_or(CopiedHistory::All, CopiedHistory::Through);
        config.fork = self.fork_session.then_some(copied);
        config.flags.session_id = self.session_id;
        config.flags.prepares = self.preparation.wanted();
        config
    }

    /// Returns the session to continue.
    fn which(&self) -> Option<SessionChoice> {
        let id = self.resume.clone().filter(|id| !id.is_empty());
        id.map(SessionChoice::Id)
            .or_else(|| self.continue_newest.then_some(SessionChoice::Newest))
    }
}

#[cfg(test)]
mod tests;
