//! `posse` on a terminal: a conversation with the main agent of a session.

mod agent_link;
mod alert;
pub(crate) mod attached;
pub(crate) mod board;
mod draft_file;
mod editor;
mod effects;
mod event_loop;
mod first_run;
mod images;
mod init;
mod link;
mod live_screen;
mod prompt_file;
mod reports;
mod resume;
mod rewind;

use std::io;
use std::process::ExitCode;

use posse_protocol::{AgentId, PermissionMode};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::Approver;
use posse_runtime::session::branch::CopiedHistory;
use posse_tui::conversation::{AgentProcess, Beginning};
use posse_tui::terminal::{RawTerminal, TerminalInput};
use rustix::termios::tcgetattr;

use self::agent_link::{AgentLink, AgentsHere};
use self::draft_file::DraftFile;
use self::event_loop::Start;
use self::first_run::FirstRun;
use self::images::Clipboard;
use self::link::Link;
use self::live_screen::{Ending, LiveScreen};
use self::reports::Reports;
use self::rewind::RewindPoint;
use crate::assemble::file_watch::FileWatch;
use crate::assemble::open::{self, Started};
use crate::assemble::run_config::{ProcessPurpose, RunConfig, SessionChoice};
use crate::config::caller;
use crate::config::look::Look;
use crate::config::search_paths::SearchPaths;
use crate::config::store::StoreArgs;
use crate::error::Advised;
use crate::headless::rule_keeper::RuleKeeper;
use crate::headless::terminal_guard::TerminalGuard;
use crate::headless::view_socket::ViewSocket;
use crate::headless::{signals, terminal};
use crate::output::say;
use crate::present::sessions::short;

/// The session that a conversation is about.
pub(crate) enum WantedSession {
    /// A new one.
    New,
    /// One that is there.
    This(SessionChoice),
    /// One that the person chooses from a list.
    Asked,
    /// A branch of one, before a prompt.
    Before(RewindPoint),
}

/// What a conversation begins with.
enum Opening {
    Nothing,
    /// The person's first prompt.
    Prompt(String),
    /// The prompt to which they have returned.
    Rewound(RewindPoint),
}

/// What was said before a conversation begins.
enum Past {
    Nothing,
    /// What its own session has.
    Own,
    /// What a session has up to an entry, or all of it.
    Of(AgentId, CopiedHistory),
}

/// Returns the session of this directory that the person chooses.
pub(crate) fn choose_session(store: &StoreArgs) -> anyhow::Result<Option<AgentId>> {
    let runtime = crate::config::runtime()?;
    let chosen = runtime.block_on(resume::choose(store));
    // A read of the terminal may never return.
    runtime.shutdown_background();
    chosen
}

/// Lists the sessions of this directory, each with the command that continues it, and returns their
/// number.
pub(crate) fn list_sessions(store: &StoreArgs, command: &str) -> anyhow::Result<usize> {
    crate::config::runtime()?.block_on(resume::list(store, command))
}

/// Holds a conversation until the person leaves. `config` returns what a session is opened with.
pub(crate) fn run(
    config: impl Fn(Option<SessionChoice>) -> anyhow::Result<RunConfig>,
    wanted: WantedSession,
    prompt: Option<String>,
    wants_plain: bool,
) -> anyhow::Result<ExitCode> {
    if !terminal::is_there() {
        anyhow::bail!(Advised {
            what: "there is no terminal to talk in".into(),
            advice: "posse -p \"explain what this project does\" runs without one".into(),
        });
    }
    let is_plain = wants_plain || terminal::needs_plain();
    caller::only_a_person_can("hold a conversation")?;
    let runtime = crate::config::runtime()?;
    let result = runtime.block_on(async {
        let scripted = match first_run::prepare(&config(None)?)? {
            FirstRun::Ready => None,
            FirstRun::Scripted(server) => Some(server),
            FirstRun::Leave => return Ok(ExitCode::SUCCESS),
        };
        if !first_run::ask_for_trust(&config(None)?)? {
            return Ok(ExitCode::SUCCESS);
        }
        let (mut wanted, mut prompt) = (wanted, prompt);
        let mut is_later = false;
        loop {
            let mut opening = prompt.take().map_or(Opening::Nothing, Opening::Prompt);
            let mut copied = None;
            let which = match wanted {
                WantedSession::New => None,
                WantedSession::Before(point) => {
                    copied = point.copied();
                    let session = point.place.map(|(session, _)| session);
                    opening = Opening::Rewound(point);
                    session.map(|session| SessionChoice::Id(session.to_string()))
                }
                WantedSession::This(session) => Some(session),
                WantedSession::Asked if is_plain => {
                    resume::list(&config(None)?.store, "posse -r").await?;
                    return Ok(ExitCode::SUCCESS);
                }
                WantedSession::Asked => match resume::choose(&config(None)?.store).await? {
                    Some(session) => Some(SessionChoice::Id(session.to_string())),
                    None => {
                        say("no session was chosen; `posse` begins a new one");
                        return Ok(ExitCode::SUCCESS);
                    }
                },
            };
            let mut config = config(which)?;
            if is_later {
                // What the command line says about its session does not hold for another.
                config.fork = copied;
                config.flags.session_id = None;
                config.flags.prepares = None;
            }
            is_later = true;
            if let Some(server) = &scripted {
                config.provider.call(server.url());
            }
            match converse(config, opening, is_plain).await? {
                Ending::Left(code) => return Ok(code),
                Ending::Other(other) => wanted = other,
            }
        }
    });
    // Blocked threads are not waited for: a read of the terminal may never return.
    runtime.shutdown_background();
    result
}

/// Holds a conversation in one session.
async fn converse(
    mut config: RunConfig,
    opening: Opening,
    is_plain: bool,
) -> anyhow::Result<Ending> {
    config.approver = Approver::FrontEnd;
    config.purpose = ProcessPurpose::Conversation;
    let allows_bypass = config.flags.profile.allow_dangerously_skip_permissions;
    let is_new = config.which.is_none();
    let copied = config.fork;
    let store_args = config.store.clone();
    let models = config.provider.known_models()?;
    let provider = config.provider.flags();
    let started = open::open(config).await?;
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
        ..
    } = started;
    let Agent {
        handle,
        events,
        found,
        ..
    } = agent;
    let past = match (found, copied) {
        (None, _) => Past::Nothing,
        (Some(_), None) => Past::Own,
        (Some(origin), Some(copied)) => Past::Of(origin.agent, copied),
    };
    let may_bypass =
        facts.mode == PermissionMode::BypassPermissions || allows_bypass && !facts.bypass_disabled;
    let _socket = ViewSocket::open(&store, &runtime, Some(slash.clone()));
    let asked = runtime.hooks_of(facts.session);
    let _files = FileWatch::start(&hooks.book, asked.clone(), &facts.cwd);
    let hooks = hooks.watch_asking(asked);
    let _watching = [live.watch(), skills.watch(), memory.watch(), hooks];
    let prompts = prompt_file::PromptFile::of(&facts.cwd);
    let look = Look::load(terminal::color_depth())?;
    look.warn();
    let beginning = Beginning {
        main: facts.session,
        size: terminal::size(),
        model: facts.model.clone(),
        mode: facts.mode,
        may_bypass,
        process: AgentProcess::This,
        directory: facts.cwd.display().to_string(),
        history: prompts.read(),
        models,
        keys: look.keys.conversation.clone(),
    };
    let before = tcgetattr(io::stdin())?;
    let raw = match is_plain {
        true => None,
        false => Some(RawTerminal::enter()?),
    };
    let screen = LiveScreen::begin(beginning, raw, look.theme)?;
    // Only now: the first frame does not wait for it. Without it a killed posse leaves raw mode.
    let guard = match is_plain {
        true => None,
        false => TerminalGuard::start(&before).ok(),
    };
    let mut link = Link {
        agents: AgentLink::Here(Box::new(AgentsHere::new(
            runtime.watch(),
            handle,
            events,
            slash,
        ))),
        store,
        rules: RuleKeeper::new(SearchPaths::at(&facts.cwd)),
        prompts,
        draft: match is_new && !matches!(opening, Opening::Rewound(_)) {
            true => DraftFile::of_new(&facts.cwd),
            false => DraftFile::of(facts.session),
        },
        swept: Some(swept),
        clipboard: Clipboard::default(),
        reports: Reports::new(&facts.cwd, provider),
        runtime: Some(runtime.clone()),
        servers: facts.servers.clone(),
        cwd: facts.cwd.clone(),
        look,
    };
    let start = Start::Session { past, opening };
    let ended = event_loop::run(screen, &mut link, start).await;
    drop(guard);
    // What is typed from now on is for the shell.
    TerminalInput::stop();
    // Events are still read, so that the agent does not wait for the front end while that waits for
    // the agent.
    let drain = async {
        if let AgentLink::Here(here) = link.agents {
            here.drain().await;
        }
    };
    signals::unless_signalled(async { tokio::join!(runtime.shut_down(), drain) }).await?;
    let ended = ended?;
    if ended.has_said {
        let again = resume_words(facts.session, &store_args);
        say(&format!("continue with: {again}"));
    }
    Ok(ended.ending)
}

/// Returns the command that continues a session.
fn resume_words(session: AgentId, store: &crate::config::store::StoreArgs) -> String {
    let again = format!("posse --resume {}", short(session));
    crate::config::store_choice::in_store(again, store)
}
