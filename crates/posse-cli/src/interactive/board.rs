//! The board, and the conversations that are opened from it.

use std::io;
use std::process::ExitCode;

use posse_protocol::AgentId;
use posse_tui::board::{BoardScreen, Scope};
use posse_tui::terminal::TerminalInput;
use rustix::termios::tcgetattr;

use super::attached;
use crate::assemble::store::OpenStore;
use crate::board::{self, BoardEnd, BoardPlace, BoardView};
use crate::config::look::Look;
use crate::error;
use crate::headless::terminal::color_depth;
use crate::headless::terminal_guard::TerminalGuard;
use crate::headless::view_socket::client::LiveAgent;
use crate::select::sessions;

/// Shows the board until the person leaves it. A conversation that is opened from it returns to it.
pub(crate) async fn show(
    open: &OpenStore,
    place: BoardPlace,
    scope: Scope,
) -> anyhow::Result<ExitCode> {
    let _guard = TerminalGuard::start(&tcgetattr(io::stdin())?).ok();
    let look = Look::load(color_depth())?;
    // Seen when the board is left.
    look.warn();
    let mut notice = look.warnings.first().cloned();
    let code = loop {
        let view = BoardView {
            place: place.clone(),
            scope,
            screen: BoardScreen::Agents,
            notice: notice.take(),
            look: look.clone(),
        };
        match board::run(open.clone(), view).await? {
            BoardEnd::Left => break ExitCode::SUCCESS,
            BoardEnd::Signalled => break ExitCode::from(error::INTERRUPTED),
            BoardEnd::Open(agent) => notice = converse(open, agent).await?,
        }
    };
    TerminalInput::stop();
    Ok(code)
}

/// Opens the conversation of an agent; else returns why it cannot be opened.
async fn converse(open: &OpenStore, agent: AgentId) -> anyhow::Result<Option<String>> {
    let agent = sessions::agent_by_prefix(&*open.store, &agent.to_string()).await?;
    match LiveAgent::find(open.sockets.as_deref(), &agent).await {
        Ok(process) => {
            attached::attach(open.clone(), &agent, process).await?;
            Ok(None)
        }
        Err(why) => {
            let main = sessions::root_of(&*open.store, &agent).await?;
            Ok(Some(format!(
                "{why}; `posse -r {main}` continues its session"
            )))
        }
    }
}
