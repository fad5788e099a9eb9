//! Chooses the session to continue from a list.

use crossterm::event::Event;
use posse_port::store::{AgentRecord, Page, SessionFilter, Store};
use posse_protocol::AgentId;
use posse_tui::picker::{Picker, PickerItem, PickerStep};
use posse_tui::terminal::{FrameWriter, InlineTerminal, RawTerminal, TerminalInput};

use crate::assemble::store::look_into_store;
use crate::config::environment::working_directory;
use crate::config::look::Look;
use crate::config::store::StoreArgs;
use crate::headless::terminal::{color_depth, size};
use crate::output::say;
use crate::output::time::age;
use crate::output::transcript::shortened;
use crate::present::history::first_line;
use crate::present::sessions::{cost, short, state};

/// Number of sessions that are offered.
const MOST: usize = 200;
/// Number of characters of a session's first words.
const WORDS: usize = 200;

/// Returns the session that the person chooses; none if there is none, or they choose none.
pub(super) async fn choose(store: &StoreArgs) -> anyhow::Result<Option<AgentId>> {
    let store = look_into_store(store)?;
    let sessions = sessions(&*store).await?;
    if sessions.is_empty() {
        return Ok(None);
    }
    let now = jiff::Timestamp::now().as_millisecond();
    let items = sessions.iter().map(|session| item(session, now)).collect();
    let mut picker = Picker::new("Continue which session?", items);
    let look = Look::load(color_depth())?;
    let _raw = RawTerminal::enter()?;
    let mut input = TerminalInput::new();
    let mut terminal = InlineTerminal::new(look.theme);
    let mut writer = FrameWriter::start(|| {})?;
    let chosen = loop {
        let size = size();
        while !writer.is_ready() {
            tokio::task::yield_now().await;
        }
        writer.write(terminal.draw(picker.view(size), 0));
        let step = match input.next().await {
            Some(Ok(Event::Key(key))) => picker.key(key),
            Some(Ok(_)) => PickerStep::Stay,
            Some(Err(_)) | None => PickerStep::Left,
        };
        match step {
            PickerStep::Stay => {}
            PickerStep::Chosen(at) => break sessions.get(at).map(|session| session.agent),
            PickerStep::Left => break None,
        }
    };
    while !writer.is_ready() {
        tokio::task::yield_now().await;
    }
    writer.write(terminal.leave(&[], size().columns, 0));
    writer.finish(std::time::Duration::from_millis(200));
    if chosen.is_none() {
        // What is typed from now on is for the shell.
        drop(input);
        TerminalInput::stop();
    }
    Ok(chosen)
}

/// Lists the sessions in plain lines, each with the command that continues it, and returns their
/// number.
pub(super) async fn list(store: &StoreArgs, command: &str) -> anyhow::Result<usize> {
    let sessions = sessions(&*look_into_store(store)?).await?;
    let now = jiff::Timestamp::now().as_millisecond();
    for session in &sessions {
        let item = item(session, now);
        let id = short(session.agent);
        say(&format!("{command} {id}  {}  {}", item.about, item.words));
    }
    Ok(sessions.len())
}

/// Returns the sessions of this directory, newest first.
async fn sessions(store: &dyn Store) -> anyhow::Result<Vec<AgentRecord>> {
    let filter = SessionFilter {
        cwd: Some(working_directory()?),
        id_prefix: None,
    };
    Ok(store.sessions(filter, Page::first(MOST)).await?)
}

fn item(session: &AgentRecord, now: i64) -> PickerItem {
    let words = session.first_prompt.as_deref().and_then(first_line);
    let words = words.unwrap_or_else(|| "(nothing was said)".to_owned());
    let cost = cost(session).map(|cost| cost.to_string());
    PickerItem {
        words: shortened(&words, WORDS),
        about: format!(
            "{:>4} {:>8} {:<7}",
            age(now.saturating_sub(session.used_ms)),
            cost.unwrap_or_default(),
            state(session)
        ),
    }
}
