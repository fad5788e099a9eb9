//! The Bash tool: runs a command in a shell.

mod background;
mod ending;
mod foreground;
mod variables;

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::SystemClock;
use posse_port::confinement::{Tier, Where};
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};
use posse_protocol::ToolContent;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{headline, tell};
use crate::bash::variables::with_variables;
use crate::capture::Capture;
use crate::command_disk;
use crate::live_sink::LiveSink;
use crate::process_start::{OF_A_REPOSITORY, OutsideProcess, OutsideProgram};
use crate::processes::Family;
use crate::sandbox::{AfterCommand, CommandRequest, ConfinedCommand, JobProgram, Sandbox};
use crate::shell::{Bounds, How, RunningShell};
use crate::system_processes::{ReadyProcess, SystemProcesses};
use crate::worktree::CheckoutGate;
pub(crate) use ending::{fault_of_status, left_behind};
pub use foreground::{ForegroundBash, ForegroundBashInput};

/// Default time limit of a command in milliseconds.
const LIMIT: u64 = 120_000;
/// Highest time limit in milliseconds.
const MOST: u64 = 600_000;
/// Length of a title, in characters of the command.
const TITLE: usize = 80;

/// Keeps git from writing, and from fetching what it lacks, in a command that only reads.
const READING: [(&str, &str); 2] = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1")];

/// What the model is told about commands.
const ABOUT: &str = "Runs a command with bash in the working directory and returns its output \
                     (standard output and error together) and exit status. Each call is a new \
                     shell: directory and variables do not carry over. There is no input and no \
                     terminal. When the command ends, processes it left running are ended. Long \
                     output is cut in the middle; the answer then names a file with all of it. To \
                     read, find, search and edit files, use the tools made for that. In a sandbox \
                     some files are read-only or hidden, and /tmp is for commands only.";
/// What it is told about commands in the background.
const ABOUT_BACKGROUND: &str = " With run_in_background the answer comes at once: read the file it \
                                names while the command runs; you are notified when it ends.";

/// Runs commands.
pub struct Bash {
    processes: SystemProcesses,
    /// Says where git may read without being asked about; nowhere if there is none.
    gate: Option<Arc<dyn CheckoutGate>>,
}

/// Input of Bash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command.
    pub command: String,
    /// How long it may take, in milliseconds: at most 600000. If absent, 120000; in the background, as long
    /// as it takes.
    pub timeout: Option<u64>,
    /// What it does, in five to ten words, for people who watch.
    pub description: Option<String>,
    /// Whether to continue without waiting for it to end.
    pub run_in_background: Option<bool>,
    /// Whether to run it outside the sandbox. A person is asked: only for what cannot work inside.
    pub outside: Option<bool>,
}

impl Bash {
    /// Returns the tool.
    pub fn new(processes: SystemProcesses, gate: Option<Arc<dyn CheckoutGate>>) -> Self {
        Self { processes, gate }
    }

    /// Starts a shell with a command.
    async fn start(
        &self,
        command: &str,
        context: &ToolContext,
    ) -> Result<(RunningShell, AfterCommand), ToolError> {
        let workspace = &context.workspace;
        let Subject::Runs {
            disk,
            tier,
            is_held,
            ..
        } = &context.subject
        else {
            return Err(tell("the shell was permitted no command"));
        };
        let (now, only_reads) = command_disk::look(command, workspace, self.gate.as_deref());
        if disk.has_plain_git && !now.has_plain_git {
            return Err(tell(
                "the repository's settings have changed since the command was judged: call it again",
            ));
        }
        if let Some(path) = command_disk::changed(disk, &now) {
            return Err(tell(format!(
                "{} leads elsewhere since the command was judged: call it again",
                path.display()
            )));
        }
        let sandbox = self.processes.sandbox();
        let mut variables = vec![workspace.variables()];
        // What a repository says must not run outside with a command that a person has let out.
        if sandbox.is_none() || context.place != Where::Outside {
            variables.insert(0, workspace.repository_variables());
        }
        let command = &*with_variables(command, &variables);
        let prepared = self
            .prepare(command, tier.held_in(&context.place), context)
            .await?;
        let mut ready = match prepared {
            Some(prepared) => ReadyProcess::confined(prepared),
            // It was not asked about only because a sandbox would hold it.
            None if *is_held && context.place != Where::Outside => {
                return Err(tell("Not run: there is no sandbox that could hold it"));
            }
            None => {
                let variables = self.variables_of(only_reads);
                ReadyProcess::outside(outside(command, context, variables))
            }
        };
        let failed = |error| tell(format!("the shell did not start: {error}"));
        let socket = self
            .processes
            .serve(&mut ready, &context.hosts, &context.clock)
            .map_err(failed)?;
        let starter = self.processes.starter(&ready);
        let started =
            RunningShell::start(ready.start, context.marker.clone(), starter, socket).await;
        Ok((started.map_err(failed)?, ready.after))
    }

    /// Returns the variables of a command outside.
    fn variables_of(&self, only_reads: bool) -> Vec<(OsString, OsString)> {
        let reading = READING.iter().filter(|_| only_reads);
        let reading = reading.map(|(name, value)| (name.into(), value.into()));
        self.processes.variables().chain(reading).collect()
    }

    /// Prepares a command for the sandbox. Returns none if it is to run outside.
    async fn prepare(
        &self,
        command: &str,
        tier: Tier,
        context: &ToolContext,
    ) -> Result<Option<ConfinedCommand>, ToolError> {
        let Where::Within {
            bounds,
            unasked,
            opened,
        } = &context.place
        else {
            return Ok(None);
        };
        let Some(sandbox) = self.processes.sandbox().cloned() else {
            return Ok(None);
        };
        let (bounds, unasked, opened) = (Arc::clone(bounds), *unasked, opened.clone());
        let (workspace, files) = (Arc::clone(&context.workspace), Arc::clone(&context.files));
        let (command, marker) = (command.to_owned(), context.marker.clone());
        // It looks at files.
        let prepared = tokio::task::spawn_blocking(move || {
            sandbox.prepare(&CommandRequest {
                program: JobProgram::Shell(&command),
                directory: &workspace.cwd,
                variables: &[],
                marker: &marker,
                workspace: &workspace,
                files: &*files,
                bounds: &bounds,
                unasked,
                opened: &opened,
                tier,
            })
        });
        let prepared = prepared.await.map_err(|error| tell(error.to_string()))?;
        prepared.map_err(|error| tell(format!("Not run: {error}")))
    }
}

/// Returns a command that runs outside the sandbox.
fn outside(
    command: &str,
    context: &ToolContext,
    variables: Vec<(OsString, OsString)>,
) -> OutsideProcess {
    // In a worktree, git must find the worktree and not what the environment names.
    let without = match context.workspace.mirror {
        Some(_) => OF_A_REPOSITORY,
        None => &[],
    };
    OutsideProcess {
        program: OutsideProgram::Shell(command.into()),
        cwd: context.workspace.cwd.clone(),
        marker: (&context.marker).into(),
        without: without.iter().map(Into::into).collect(),
        variables,
    }
}

impl TypedTool for Bash {
    type Input = BashInput;

    const NAME: &'static str = "Bash";

    fn description(&self) -> Cow<'static, str> {
        format!("{ABOUT}{ABOUT_BACKGROUND}").into()
    }

    fn intent(&self, input: &BashInput, workspace: &Workspace) -> Result<Intent, ToolError> {
        limit(input)?;
        let sandbox = self.processes.sandbox();
        let outside = sandbox.is_some() && input.outside == Some(true);
        if outside && sandbox.is_some_and(Sandbox::is_never_left) {
            return Err(tell(
                "settings say that no command runs outside the sandbox",
            ));
        }
        let is_background = input.run_in_background == Some(true);
        let (disk, only_reads) =
            command_disk::look(&input.command, workspace, self.gate.as_deref());
        let only_reads = only_reads && !is_background;
        Ok(Intent {
            read_only: only_reads,
            beside_others: only_reads,
            subject: Subject::Runs {
                command: input.command.clone(),
                disk,
                tier: sandbox.map_or(Tier::C, Sandbox::tier),
                is_held: !outside && sandbox.is_some_and(Sandbox::holds),
                outside,
            },
            waits: false,
            title: format!("$ {}", headline(&input.command, TITLE)),
        })
    }

    async fn run(&self, input: BashInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let limit = limit(&input)?;
        if input.run_in_background == Some(true) {
            return self.go_on(input, limit, context).await;
        }
        let capture = Capture::new(&context.workspace.spill, &context.marker);
        let mut sink = LiveSink::new(capture, &context);
        let (shell, after) = self.start(&input.command, &context).await?;
        let bounds = Bounds {
            limit,
            cancel: &context.cancel,
            clock: &*context.clock,
        };
        let followed = shell.follow(bounds, &mut sink).await;
        let capture = sink.finish();
        let ending = followed.map_err(|error| tell(format!("the shell was lost: {error}")))?;
        let mut told = capture.told().await;
        let answer = context.wants_answer.then(|| answer(&told));
        if told.is_empty() {
            // So that silence is not taken for output that was left out.
            told.push_str("(no output)");
        }
        let left = ending::left(&ending).into_iter();
        for line in left.chain(after.check()) {
            note(&mut told, &line);
        }
        let fault = ending::fault(&ending, limit);
        let (refused, notes) = match ending.how {
            How::Exited(_) if fault.is_some() || has_parts(&input.command) => {
                after.refused(&told, fault.is_some(), &context)
            }
            How::Exited(_) | How::TimedOut | How::Interrupted => (None, Vec::new()),
        };
        for line in fault.iter().chain(&notes) {
            note(&mut told, line);
        }
        match (refused, fault) {
            (Some(refusal), fault) => Ok(ToolOutput {
                content: vec![ToolContent::text(told)],
                answer,
                then: FollowUp::Refused {
                    refusal,
                    failed: fault.is_some(),
                },
            }),
            (None, Some(_)) => Err(tell(told)),
            (None, None) => Ok(ToolOutput {
                answer,
                ..ToolOutput::text(told)
            }),
        }
    }

    // After a crash only the marker in their environment identifies the processes of a call.
    async fn abandon(&self, marker: String) {
        Family::marked(&marker).end(&SystemClock::default()).await;
    }
}

/// Returns the time limit; `None` in the background unless one is set.
fn limit(input: &BashInput) -> Result<Option<Duration>, ToolError> {
    match input.timeout {
        Some(0) => Err(tell("timeout must be more than 0 milliseconds")),
        Some(limit) if limit > MOST => Err(tell(format!("timeout is at most {MOST} milliseconds"))),
        Some(limit) => Ok(Some(Duration::from_millis(limit))),
        None if input.run_in_background == Some(true) => Ok(None),
        None => Ok(Some(Duration::from_millis(LIMIT))),
    }
}

/// Returns what a command has printed, for hooks: without the line ends after it, as scripts of the
/// ecosystem know it. Its errors are among its output.
fn answer(printed: &str) -> Value {
    let printed = printed.trim_end_matches(['\r', '\n']);
    json!({"stdout": printed, "stderr": "", "interrupted": false, "isImage": false})
}

/// Returns true if the exit code of a command may be that of another part than the one that failed,
/// as in `make | tail`.
fn has_parts(command: &str) -> bool {
    command.contains(['|', ';', '&', '\n'])
}

/// Appends a line.
fn note(told: &mut String, what: &str) {
    if !told.is_empty() && !told.ends_with('\n') {
        told.push('\n');
    }
    told.push_str(what);
}
