//! Runs a job: opens the agent, sends the first command, and returns the exit code.

use std::fs::File;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::SystemClock;
use posse_port::store::{Page, QuestionFilter, Store};
use posse_protocol::{
    AgentId, Command, ContentBlock, Event, EventKind, Name, Outcome, PermissionMode, RealmId,
    TeamPlan,
};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::Approver;
use serde_json::{Value, json};
use uuid::Uuid;

use super::callbacks::HookCallbacks;
use super::controller::{Controller, ProgramTerms, RunPlan, RunResult};
use super::event_loop::{self, BoardShown};
use super::input::initialize::{self, Initialize};
use super::input::stdin::{StdinLine, StdinLines};
use super::input::{self, RequestError};
use super::keyboard::Keyboard;
use super::question_queue::QuestionQueue;
use super::render::{Renderer, result};
use super::rule_keeper::RuleKeeper;
use super::session_spending::SessionSpending;
use super::signals::Signals;
use super::stop;
use super::team_snapshot::TaskProgress;
use super::team_watch::TeamWatch;
use super::view_socket::ViewSocket;
use super::writer::OutputWriter;
use crate::assemble::facts::SessionFacts;
use crate::assemble::file_watch::FileWatch;
use crate::assemble::on_question::OnQuestion;
use crate::assemble::open::{self, Started};
use crate::assemble::program_hooks::ProgramHooks;
use crate::assemble::run_config::RunConfig;
use crate::assemble::run_options::{OutputFormat, RunOptions};
use crate::assemble::store::OpenStore;
use crate::assemble::{directories, kept_work};
use crate::config::environment;
use crate::config::search_paths::SearchPaths;
use crate::definitions::slash::SlashError;
use crate::definitions::{AgentSources, LiveDefinitions};
use crate::error::{self, Advised};
use crate::output::{grouped, json_line, print, say, size, tame};
use crate::present::question;
use crate::present::usage::TOKEN_BYTES;

/// The variable by which the official SDKs ask for the session's state.
const READS_STATE: &str = "CLAUDE_CODE_SDK_READS_SESSION_STATE";

/// What an agent shall do.
pub(crate) struct RunJob {
    pub(crate) config: RunConfig,
    pub(crate) first: FirstInput,
    /// A lock that is held until the first entry is stored.
    pub(crate) starting: Option<File>,
    /// Shows everybody at work to a person at the terminal, until that person leaves.
    pub(crate) board: Option<OpenBoard>,
}

/// Shows the agents of a session on the whole screen.
pub(crate) type OpenBoard = fn(OpenStore, AgentId) -> BoardShown;

/// Who reads what a job tells, and stops it, if that is not the terminal or the program at the other
/// end of the process.
pub(crate) struct JobCaller {
    pub(crate) writer: OutputWriter,
    pub(crate) signals: Signals,
    /// Is shown each event of the session.
    pub(crate) watches: Box<dyn FnMut(&Event)>,
}

/// How a job ended.
pub(crate) struct JobEnd {
    pub(crate) run: RunResult,
    /// The command that continues the session, without a prompt.
    pub(crate) again: String,
    /// Where work lies that is not in the checkout.
    pub(crate) kept: Vec<String>,
    /// The questions that still wait for an answer, the first of them.
    pub(crate) questions: Vec<String>,
}

/// The first input.
pub(crate) enum FirstInput {
    /// A person's prompt; `None` continues unfinished work.
    Words(Option<Vec<ContentBlock>>),
    /// Continue the work of others; the agent itself may have nothing to do.
    Rest,
    /// The goal of a team that is started for it.
    Team {
        name: Name,
        plan: Box<TeamPlan>,
        words: Vec<ContentBlock>,
    },
}

impl FirstInput {
    /// Returns the first command, if there is one.
    fn command(self, started: &Started, listening: bool) -> Result<Option<Command>, Advised> {
        let words = match self {
            Self::Team { name, plan, words } => {
                return Ok(Some(Command::Team { name, plan, words }));
            }
            Self::Rest => return Ok(Some(Command::Continue)),
            Self::Words(words) => words,
        };
        let unfinished = started.agent.unfinished;
        match words {
            Some(words) => {
                fits(&words, &started.facts)?;
                let read = started.slash.read(words).map_err(no_command)?;
                Ok(Some(read.reported()))
            }
            // A program that sends lines says itself what comes next.
            None if listening => Ok(None),
            None if unfinished => Ok(Some(Command::Continue)),
            None => Err(Advised {
                what: format!("session {} has nothing left to do", started.facts.session),
                advice: format!(
                    "give it a prompt: {} \"and now the tests\"",
                    started.facts.again
                ),
            }),
        }
    }
}

/// Refuses a prompt that the model's window cannot hold.
fn fits(words: &[ContentBlock], facts: &SessionFacts) -> Result<(), Advised> {
    let bytes = words.iter().map(|block| match block {
        ContentBlock::Text { text } => text.len() as u64,
        _ => 0,
    });
    let bytes: u64 = bytes.sum();
    let Some(window) = facts
        .window
        .filter(|window| bytes > window.saturating_mul(TOKEN_BYTES))
    else {
        return Ok(());
    };
    Err(Advised {
        what: format!(
            "the prompt has {}, which is about {} tokens; {} holds {} (about {}). Nothing was sent",
            size(bytes),
            grouped(bytes / TOKEN_BYTES),
            facts.model,
            grouped(window),
            size(window.saturating_mul(TOKEN_BYTES)),
        ),
        advice: "name the file in the prompt: the agent reads and searches it in parts".into(),
    })
}

/// Runs a job. If it cannot even begin, programs get a result line.
pub(crate) fn run(
    options: &RunOptions,
    job: impl FnOnce() -> anyhow::Result<RunJob>,
) -> anyhow::Result<ExitCode> {
    let output = options.output_format();
    let result = job().and_then(|job| begin(options, job));
    if let Err(error) = &result
        && !error::is_broken_pipe(error)
        && output != OutputFormat::Text
    {
        let line = json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0,
            "errors": [format!("{error:#}")], "terminal_reason": "failed", "uuid": Uuid::now_v7(),
            "duration_ms": 0, "duration_api_ms": 0, "session_id": "", "permission_denials": [],
        });
        print(json_line(&line).as_bytes())?;
    }
    result
}

/// Runs a job in a new runtime.
fn begin(options: &RunOptions, job: RunJob) -> anyhow::Result<ExitCode> {
    let runtime = crate::config::runtime()?;
    let result = runtime.block_on(async {
        let leads = job.config.team.is_some();
        let end = work(options, job, None).await?;
        if leads && end.run.is_interrupted() {
            let again = &end.again;
            say(&format!("the team's work is kept; continue with: {again}"));
        }
        end.kept.iter().for_each(|line| say(line));
        let code = finish(&end.run, &end.again);
        end.questions.iter().for_each(|note| say(note));
        Ok(match end.questions.is_empty() {
            false if code == ExitCode::SUCCESS => error::UNFINISHED.into(),
            _ => code,
        })
    });
    // Blocked threads are not waited for: a read of standard input may never return.
    runtime.shutdown_background();
    result
}

/// Opens the agent and runs the event loop. Without a caller, the job has the process to itself: it
/// hears its signals, and a person at its terminal is asked.
pub(crate) async fn work(
    options: &RunOptions,
    job: RunJob,
    caller: Option<JobCaller>,
) -> anyhow::Result<JobEnd> {
    let RunJob {
        mut config,
        first,
        mut starting,
        board,
    } = job;
    let listening = options.by_lines();
    let mut lines = listening.then(StdinLines::start);
    let (callbacks, open_callbacks, asked_back) = HookCallbacks::new();
    let initialized = match &mut lines {
        Some(lines) => initialize(&mut config, lines, callbacks).await?,
        None => false,
    };
    let owns_process = caller.is_none();
    let person = match owns_process && !listening {
        true => Keyboard::open(),
        false => None,
    };
    let board = board.filter(|_| person.is_some());
    let denies = options.terms.on_question == Some(OnQuestion::Deny);
    let keyboard = person.filter(|_| !denies);
    if keyboard.is_some() && config.approver == Approver::Nobody {
        config.approver = Approver::FrontEnd;
    }
    let waits_for_answers = matches!(config.approver, Approver::Anyone(_));
    let allows_bypass = config.flags.profile.allow_dangerously_skip_permissions;
    let (team, is_new) = (config.team.clone(), config.which.is_none());
    let started = open::open(config).await?;
    let first = first.command(&started, listening)?;
    let Started {
        runtime,
        agent,
        facts,
        store,
        live,
        skills,
        memory,
        hooks,
        slash,
        swept,
        worktrees,
    } = started;
    let Agent {
        handle,
        account,
        mut events,
        ..
    } = agent;
    let (again, session) = (facts.again.clone(), facts.session);
    let realm = RealmId::from(session.uuid());
    let stored = store.store.clone();
    let cwd = facts.cwd.clone();
    let rules = RuleKeeper::new(SearchPaths::at(&cwd));
    let watch = TeamWatch::new(store.store.clone(), facts.session, team.clone(), is_new);
    let spending = match is_new {
        true => Some(SessionSpending::of_new(stored.clone(), facts.session)),
        false => SessionSpending::of_continued(stored.clone(), facts.session).await,
    };
    let _socket = ViewSocket::open(&store, &runtime, Some(slash.clone()));
    let plan = RunPlan {
        main: facts.session,
        first,
        listening,
        waits_for_answers,
        terminal: keyboard.is_some().then(|| match board {
            Some(_) => QuestionQueue::hidden(),
            None => QuestionQueue::default(),
        }),
        program: ProgramTerms {
            initialized,
            tells_state: listening && environment::variable(READS_STATE).is_some(),
            callbacks: open_callbacks,
            agents: about_agents(&live, &facts),
            may_bypass: facts.mode == PermissionMode::BypassPermissions
                || allows_bypass && !facts.bypass_disabled,
        },
        patience: options.patience(),
        account,
        slash,
        led: team.is_some(),
    };
    let controller = Controller::new(Renderer::new(options, facts, team.is_some()), plan);
    let clock = SystemClock::default();
    let board = board.map(|board| board(store.clone(), session));
    let stopping = async {
        match owns_process {
            true => stop::when_told(store).await,
            false => std::future::pending().await,
        }
    };
    tokio::pin!(stopping);
    let asked = runtime.hooks_of(session);
    let _files = FileWatch::start(&hooks.book, asked.clone(), &cwd);
    let hooks = hooks.watch_asking(asked);
    let _watching = [live.watch(), skills.watch(), memory.watch(), hooks];
    let JobCaller {
        writer,
        mut signals,
        mut watches,
    } = match caller {
        Some(caller) => caller,
        None => JobCaller {
            writer: OutputWriter::start()?,
            signals: Signals::new()?,
            watches: Box::new(|_| {}),
        },
    };
    let outside = event_loop::LoopInputs {
        lines,
        keyboard,
        board,
        swept,
        watch,
        shows_team: team.is_some(),
        spending,
        rules,
        callbacks: listening.then_some(asked_back),
        watches: Box::new(move |event| {
            if matches!(event.kind, EventKind::Entry(_)) {
                starting.take();
            }
            watches(event);
        }),
    };
    let agent = (handle, &mut events);
    let peer = (writer, &mut signals);
    let ending = tokio::select! {
        ending = event_loop::run(controller, agent, outside, peer, &clock) => ending,
        Err(error) = &mut stopping => Err(error),
    };
    if !ending.as_ref().is_ok_and(RunResult::leaves_at_once) {
        // Events are still read, so that the agent does not wait for the front end while that
        // waits for the agent.
        let drain = async { while events.recv().await.is_some() {} };
        let last = async { tokio::join!(runtime.shut_down(), drain) };
        signals.unless_next(last).await;
    }
    // Only now, because the runtime must be shut down even if the loop has failed.
    let run = ending?;
    let kept = match run.leaves_at_once() {
        true => Vec::new(),
        false => kept_work::lines(&*stored, worktrees, &directories::worktrees()?, realm).await,
    };
    Ok(JobEnd {
        run,
        again,
        kept,
        questions: questions_left(&*stored, realm).await,
    })
}

/// Time to look for them.
const LOOK: Duration = Duration::from_secs(1);
/// Number of questions that are named at the end.
const NAMED: usize = 20;

/// Returns the questions that still wait when a job ends.
async fn questions_left(store: &dyn Store, realm: RealmId) -> Vec<String> {
    let filter = QuestionFilter {
        realm: Some(realm),
        open: true,
        ..QuestionFilter::default()
    };
    // A store that fails or does not answer now has been told of already.
    let open = tokio::time::timeout(LOOK, store.questions(filter, Page::first(NAMED))).await;
    let open = open.ok().and_then(Result::ok).unwrap_or_default();
    let notes = open.iter().map(|record| question::note(&record.question));
    notes.collect()
}

/// Returns what a program is told about the agent types.
fn about_agents(live: &LiveDefinitions<AgentSources>, facts: &SessionFacts) -> Vec<Value> {
    let types = live.catalogue.now();
    let known = types
        .iter()
        .filter(|kind| facts.agents.contains(&kind.name));
    known
        .map(|kind| json!({"name": kind.name, "description": kind.description}))
        .collect()
}

/// Applies a program's `initialize`, which is the first line it sends. It can change the system
/// prompt and the agent types, and so nothing is opened before it. If it cannot be applied, the
/// program is told, and no session begins: not all programs look at the answer.
async fn initialize(
    config: &mut RunConfig,
    lines: &mut StdinLines,
    callbacks: HookCallbacks,
) -> anyhow::Result<bool> {
    let Some(StdinLine::Text(line)) = lines.peek().await else {
        return Ok(false);
    };
    let Some((id, request)) = initialize::of_line(line) else {
        return Ok(false);
    };
    let applied = request.and_then(|request| {
        config.flags.program_hooks = (!request.hooks.is_empty()).then(|| ProgramHooks {
            hooks: request.hooks.clone(),
            runner: Arc::new(callbacks),
        });
        apply(request, config)
    });
    if let Err(error) = applied {
        print(json_line(&input::response(&id, Err(&error))).as_bytes())?;
        return Err(error.into());
    }
    Ok(true)
}

/// Applies an `initialize`, and reports what is not supported.
fn apply(request: Initialize, config: &mut RunConfig) -> Result<(), RequestError> {
    if !request.unused.is_empty() {
        let keys = tame(&request.unused.join(", "));
        say(&format!(
            "warning: posse does not support {keys} of initialize"
        ));
    }
    request.apply(config)
}

/// Returns the error for a prompt that looks like a command but is none.
fn no_command(error: SlashError) -> Advised {
    let advice = "`posse skills list` shows what can be called; put a word before the slash to make it a \
         prompt";
    Advised {
        what: error.to_string(),
        advice: advice.into(),
    }
}

/// Prints what went wrong and returns the exit code.
fn finish(ending: &RunResult, again: &str) -> ExitCode {
    let code = match &ending.last {
        Some(end) => {
            match (&end.outcome, result::complaint(&end.outcome)) {
                (Outcome::Interrupted, _) => say("interrupted"),
                (outcome, Some(complaint)) => {
                    error::tell(&complaint, result::advice(outcome, again).as_deref());
                }
                (_, None) => {}
            }
            result::exit_code(&end.outcome)
        }
        None => 0,
    };
    // Also if its lead had nothing to do in this process, and so no run that could say so.
    let has_open_tasks = ending.progress.as_ref().is_some_and(TaskProgress::is_open);
    // The last line, however a team's run has ended: how much of its work is done.
    if let Some(progress) = &ending.progress {
        say(&progress.line());
    }
    match code {
        // A signal decides, whatever the last run came to: a shell expects 130 after Ctrl-C.
        _ if ending.is_interrupted() => ExitCode::from(error::INTERRUPTED),
        0 if ending.not_understood => ExitCode::from(error::FAILED),
        0 if ending.gave_up || has_open_tasks => ExitCode::from(error::UNFINISHED),
        code => ExitCode::from(code),
    }
}
