//! The whole transcript of an agent on the whole screen, read from the store in windows.

use posse_port::store::{Page, Store, StoredEntry};
use posse_protocol::{AgentId, ContentBlock, Entry, EntryKind, Message, Role};
use posse_tui::pager::{self, Pager, PagerBeginning, PagerEffect, PagerInput};

use super::whole_screen::{ScreenEvent, WholeScreen};
use crate::assemble::store::OpenStore;
use crate::config::look::Look;
use crate::headless::signals::Signals;
use crate::headless::stop;
use crate::headless::terminal::size;
use crate::present::history::decoded;
use crossterm::event::Event as TerminalEvent;

/// Number of entries that a search reads at a time.
const SEARCHED: u64 = 500;

/// Shows the transcript of an agent until the person leaves it.
pub(crate) async fn run(
    open: &OpenStore,
    look: &Look,
    agent: AgentId,
    title: String,
) -> anyhow::Result<()> {
    let store = open.store.as_ref();
    let total = store.entries(agent, Page::last(1)).await?.total;
    let beginning = PagerBeginning {
        size: size(),
        title,
        total,
    };
    let (mut pager, effects) = Pager::open(beginning);
    let mut effects = answered(&mut pager, store, agent, effects).await?;
    let mut screen = WholeScreen::take(look)?;
    let shown = show(&mut pager, &mut screen, open, agent, &mut effects).await;
    screen.leave().await;
    shown
}

async fn show(
    pager: &mut Pager,
    screen: &mut WholeScreen,
    open: &OpenStore,
    agent: AgentId,
    effects: &mut Vec<PagerEffect>,
) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let mut is_dirty = true;
    loop {
        for effect in std::mem::take(effects) {
            match effect {
                PagerEffect::Leave => return Ok(()),
                PagerEffect::Suspend => {
                    screen.give_back().await;
                    stop::now(open).await?;
                    screen.take_again()?;
                    pager::update(pager, PagerInput::Size(size()));
                    is_dirty = true;
                }
                PagerEffect::Copy(text) => {
                    screen.copy(&text);
                    let notice = "copied, if the terminal takes it".to_owned();
                    pager::update(pager, PagerInput::Notice(notice));
                }
                // Those that read are answered at once.
                PagerEffect::Read { .. } | PagerEffect::Search { .. } => {}
            }
        }
        if is_dirty && screen.is_ready() {
            let frame = pager::view(pager);
            screen.draw(frame.cells, frame.caret);
            is_dirty = false;
        }
        let input = tokio::select! {
            event = screen.next() => match event {
                Some(ScreenEvent::Typed(TerminalEvent::Key(key))) => PagerInput::Key(key),
                Some(ScreenEvent::Typed(TerminalEvent::Paste(text))) => PagerInput::Paste(text),
                Some(ScreenEvent::Typed(TerminalEvent::Mouse(event))) => PagerInput::Mouse(event),
                Some(ScreenEvent::Typed(TerminalEvent::Resize(..))) => PagerInput::Size(size()),
                Some(ScreenEvent::Typed(_) | ScreenEvent::Written) => continue,
                None => return Ok(()),
            },
            () = signals.next() => return Ok(()),
        };
        let wanted = pager::update(pager, input);
        *effects = answered(pager, open.store.as_ref(), agent, wanted).await?;
        is_dirty = true;
    }
}

/// Reads what is wanted, until nothing more is. Returns what else is to be done.
async fn answered(
    pager: &mut Pager,
    store: &dyn Store,
    agent: AgentId,
    mut effects: Vec<PagerEffect>,
) -> anyhow::Result<Vec<PagerEffect>> {
    let mut rest = Vec::new();
    while !effects.is_empty() {
        let mut more = Vec::new();
        for effect in effects {
            let input = match effect {
                PagerEffect::Read { from, count } => PagerInput::Entries {
                    from,
                    entries: window(store, agent, from, count).await?,
                },
                PagerEffect::Search {
                    text,
                    from,
                    backwards,
                } => PagerInput::Found {
                    entry: found(store, agent, (&text, from, backwards)).await?,
                },
                other => {
                    rest.push(other);
                    continue;
                }
            };
            more.extend(pager::update(pager, input));
        }
        effects = more;
    }
    Ok(rest)
}

/// Returns the entries from a position on.
async fn window(
    store: &dyn Store,
    agent: AgentId,
    from: u64,
    count: u64,
) -> anyhow::Result<Vec<Entry>> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let page = match from.checked_sub(1) {
        Some(before) => Page::after(before, count),
        None => Page::first(count),
    };
    let page = store.entries(agent, page).await?;
    Ok(page.entries.iter().map(readable).collect())
}

/// Returns an entry; one that cannot be read says so.
fn readable(stored: &StoredEntry) -> Entry {
    decoded(stored).unwrap_or_else(|error| Entry {
        seq: stored.entry.seq,
        kind: EntryKind::Model,
        message: std::sync::Arc::new(Message {
            role: Role::User,
            content: vec![ContentBlock::text(format!(
                "(this entry cannot be read: {error})"
            ))],
        }),
        reply: None,
    })
}

/// Returns the nearest entry with a text. Capitals do not matter.
async fn found(
    store: &dyn Store,
    agent: AgentId,
    (text, from, backwards): (&str, u64, bool),
) -> anyhow::Result<Option<u64>> {
    let text = text.to_lowercase();
    let mut at = from;
    loop {
        let (first, count) = match backwards {
            true => (at.saturating_sub(SEARCHED - 1), at.min(SEARCHED - 1) + 1),
            false => (at, SEARCHED),
        };
        let entries = window(store, agent, first, count).await?;
        let is_short = (entries.len() as u64) < count;
        let mut hits = entries.iter().enumerate();
        let has = |(_, entry): &(usize, &Entry)| has_text(entry, &text);
        let hit = match backwards {
            true => hits.rfind(has),
            false => hits.find(has),
        };
        if let Some((index, _)) = hit {
            return Ok(Some(first + index as u64));
        }
        match backwards {
            true if first == 0 => return Ok(None),
            true => at = first - 1,
            false if is_short => return Ok(None),
            false => at = first + count,
        }
    }
}

/// Returns true if an entry has a text in small letters.
fn has_text(entry: &Entry, text: &str) -> bool {
    let has = |part: &str| part.to_lowercase().contains(text);
    entry.message.content.iter().any(|block| match block {
        ContentBlock::Text { text } => has(text),
        ContentBlock::Thinking { thinking, .. } => has(thinking),
        ContentBlock::ToolUse { name, input, .. } => has(name) || has(input.get()),
        ContentBlock::ToolResult { content, .. } => content.iter().any(|part| match part {
            posse_protocol::ToolContent::Text { text } => has(text),
            posse_protocol::ToolContent::Image { .. } => false,
            posse_protocol::ToolContent::Tools { tools } => {
                tools.iter().any(|tool| has(&tool.name))
            }
        }),
        _ => false,
    })
}
