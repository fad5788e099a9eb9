//! A conversation with an agent that another process runs. Leaving it changes nothing there.

use std::io;
use std::process::ExitCode;

use posse_port::store::AgentRecord;
use posse_runtime::live::servers::ServerWatch;
use posse_tui::conversation::{AgentProcess, Beginning};
use posse_tui::terminal::RawTerminal;
use rustix::termios::tcgetattr;

use super::agent_link::{AgentLink, AgentsThere};
use super::draft_file::DraftFile;
use super::event_loop::{self, Start};
use super::images::Clipboard;
use super::link::Link;
use super::live_screen::{Ending, LiveScreen};
use super::prompt_file::PromptFile;
use super::reports::Reports;
use crate::assemble::store::OpenStore;
use crate::config::look::Look;
use crate::config::search_paths::SearchPaths;
use crate::headless::rule_keeper::RuleKeeper;
use crate::headless::terminal::{color_depth, size};
use crate::headless::terminal_guard::TerminalGuard;
use crate::headless::view_socket::client::LiveAgent;
use crate::output::say;
use crate::present::sessions::short;
use crate::select::sessions::root_of;

/// Shows an agent and passes on what it is told, until the person leaves or its process ends.
pub(crate) async fn attach(
    store: OpenStore,
    agent: &AgentRecord,
    process: LiveAgent,
) -> anyhow::Result<ExitCode> {
    let main = root_of(store.store.as_ref(), agent).await?;
    let prompts = PromptFile::of(&agent.cwd);
    let look = Look::load(color_depth())?;
    look.warn();
    let beginning = Beginning {
        main,
        size: size(),
        model: agent.model.clone(),
        mode: agent.mode,
        may_bypass: false,
        process: AgentProcess::Another,
        directory: agent.cwd.display().to_string(),
        history: prompts.read(),
        models: Vec::new(),
        keys: look.keys.conversation.clone(),
    };
    let before = tcgetattr(io::stdin())?;
    let screen = LiveScreen::begin(beginning, Some(RawTerminal::enter()?), look.theme)?;
    let guard = TerminalGuard::start(&before).ok();
    let mut link = Link {
        agents: AgentLink::There(Box::new(AgentsThere::new(main, process))),
        store,
        rules: RuleKeeper::new(SearchPaths::at(&agent.cwd)),
        prompts,
        draft: DraftFile::of_viewer(agent.agent),
        swept: None,
        clipboard: Clipboard::default(),
        reports: Reports::new(&agent.cwd, Vec::new()),
        runtime: None,
        servers: ServerWatch::default(),
        cwd: agent.cwd.clone(),
        look,
    };
    let ended = event_loop::run(screen, &mut link, Start::Attached(agent.agent)).await;
    drop(guard);
    say(&format!(
        "detached; attach again with: posse attach {}",
        short(agent.agent)
    ));
    match ended?.ending {
        Ending::Left(code) => Ok(code),
        // Another session is never asked for here.
        Ending::Other(_) => Ok(ExitCode::SUCCESS),
    }
}
