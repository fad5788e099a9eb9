//! The Bash tool: a command in a shell.

use std::borrow::Cow;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use posse_runtime::port::clock::SystemClock;
use posse_runtime::tool::{Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::{headline, tell};
use crate::capture::Capture;
use crate::processes::Family;
use crate::shell::{How, Shell};

/// How long a command may take, and how long at most, in milliseconds.
const LIMIT: u64 = 120_000;
const MOST: u64 = 600_000;
/// How much of a command is its title.
const TITLE: usize = 80;

/// Runs commands.
pub struct Bash;

/// What Bash is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command.
    pub command: String,
    /// How long it may take, in milliseconds: at most 600000; 120000 if absent.
    pub timeout: Option<u64>,
    /// What it does, in five to ten words, for people who look on.
    pub description: Option<String>,
}

impl TypedTool for Bash {
    type Input = BashInput;

    const NAME: &'static str = "Bash";

    fn description(&self) -> Cow<'static, str> {
        "Runs a command with bash in the working directory and tells what it prints (standard output and \
         error together) and how it ended. Each call is a new shell: directory and variables do not carry \
         over. There is no input and no terminal. When the command ends, whatever it left running is ended. \
         Long output is cut in the middle; all of it is then in a file that is named. To read, find, search \
         and edit files, use the tools made for it."
            .into()
    }

    fn intent(&self, input: &BashInput, _: &Workspace) -> Result<Intent, ToolError> {
        limit(input)?;
        Ok(Intent {
            read_only: false,
            beside_others: false,
            subject: Subject::Runs(input.command.clone()),
            title: format!("$ {}", headline(&input.command, TITLE)),
        })
    }

    async fn run(&self, input: BashInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let limit = limit(&input)?;
        let failed = |error| tell(format!("the shell did not run: {error}"));
        let mut capture = Capture::new(&context.workspace.spill, &context.marker);
        let shell = Shell::start(&input.command, &context).map_err(failed)?;
        let ending = shell.follow(limit, &context, &mut capture).await.map_err(failed)?;
        let mut told = capture.told().await;
        if told.is_empty() {
            // So that nobody takes silence for something that was left out.
            told.push_str("(no output)");
        }
        match ending.how {
            How::Exited(status) => {
                if ending.ended > 0 {
                    let what = "still running when the shell ended; now ended, too";
                    note(&mut told, &format!("({} {what})", processes(ending.ended)));
                }
                match status.map(fault) {
                    Some(None) => Ok(ToolOutput::text(told)),
                    Some(Some(fault)) => Err(with(told, &fault)),
                    None => Err(with(told, "it is not known how it ended")),
                }
            }
            How::TimedOut => {
                let what =
                    format!("ended after {} s, its time limit; timeout sets another", limit.as_secs_f64());
                Err(with(told, &what))
            }
            How::Interrupted => Err(with(told, "interrupted; everything it had started was ended")),
        }
    }

    async fn abandon(&self, marker: String) {
        Family::marked(&marker).end(&SystemClock::default()).await;
    }
}

fn limit(input: &BashInput) -> Result<Duration, ToolError> {
    match input.timeout.unwrap_or(LIMIT) {
        0 => Err(tell("timeout is in milliseconds and more than 0")),
        limit if limit > MOST => Err(tell(format!("timeout is at most {MOST} milliseconds"))),
        limit => Ok(Duration::from_millis(limit)),
    }
}

fn with(mut told: String, what: &str) -> ToolError {
    note(&mut told, what);
    tell(told)
}

fn note(told: &mut String, what: &str) {
    if !told.is_empty() && !told.ends_with('\n') {
        told.push('\n');
    }
    told.push_str(what);
}

fn processes(n: usize) -> String {
    if n == 1 { "1 process was".into() } else { format!("{n} processes were") }
}

/// What went wrong, if something did.
fn fault(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => match signal_name(code - 128) {
            Some(name) => Some(format!("exit code {code} ({name})")),
            None => Some(format!("exit code {code}")),
        },
        (None, Some(signal)) => {
            let name = signal_name(signal).unwrap_or("a signal");
            Some(format!("killed by {name} (signal {signal})"))
        }
        (None, None) => Some(status.to_string()),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_named() {
        let check =
            |raw, expected: Option<&str>| assert_eq!(fault(ExitStatus::from_raw(raw)).as_deref(), expected);
        check(0, None);
        check(3 << 8, Some("exit code 3"));
        check(137 << 8, Some("exit code 137 (SIGKILL)"));
        check(200 << 8, Some("exit code 200"));
        check(15, Some("killed by SIGTERM (signal 15)"));
        check(63, Some("killed by a signal (signal 63)"));
    }
}
