//! The loop of a conversation: keys, events and time come in, frames and commands go out.

use std::process::ExitCode;
use std::time::Duration;

use crossterm::event::Event as TerminalEvent;
use posse_port::clock::{Clock as _, SystemClock};
use posse_protocol::{AgentId, Command, Detail, ListKind, WatchTarget};
use posse_tui::conversation::{Effect, Input};
use posse_tui::terminal::TerminalInput;

use super::agent_link::AgentNews;
use super::effects::{carry_out, on_news, say, show};
use super::link::Link;
use super::live_screen::{Ended, Ending, LiveScreen};
use super::{Opening, Past};
use crate::error;
use crate::headless::event_loop::{next, told};
use crate::headless::input::stdin::{StdinLine, StdinLines};
use crate::headless::signals::Signals;
use crate::headless::terminal::size;

/// Time after which a changed draft is kept.
const DRAFT: Duration = Duration::from_millis(500);
/// Number of events that are handled before the next frame.
const EVENTS: usize = 256;

/// How a conversation begins.
pub(super) enum Start {
    /// In a session of this process.
    Session { past: Past, opening: Opening },
    /// With this agent of a process that runs.
    Attached(AgentId),
}

/// Runs until the person leaves.
pub(super) async fn run(
    mut screen: LiveScreen,
    link: &mut Link,
    start: Start,
) -> anyhow::Result<Ended> {
    begin(&mut screen, link, start).await?;
    let mut signals = Signals::new()?;
    let mut lines = screen.plain.is_some().then(StdinLines::start);
    while screen.ending.is_none() {
        let due = screen.next_due();
        let effects = tokio::select! {
            // Keys are drawn before anything else.
            biased;
            typed = typed(&mut screen.input) => match typed {
                Some(event) => on_terminal(&mut screen, event),
                None => {
                    screen.ending = Some(Ending::Left(ExitCode::from(error::INTERRUPTED)));
                    Vec::new()
                }
            },
            line = next(&mut lines), if lines.is_some() => match line {
                Some(StdinLine::Text(line)) => screen.update(Input::Line(line)),
                Some(StdinLine::Unreadable(why)) => screen.update(Input::Notice(why.into())),
                None => vec![Effect::Leave],
            },
            () = signals.next() => {
                screen.ending = Some(Ending::Left(ExitCode::from(error::INTERRUPTED)));
                Vec::new()
            }
            () = screen.written.notified() => Vec::new(),
            () = sleep(&screen.clock, due) => {
                screen.on_time(link);
                Vec::new()
            }
            news = link.agents.next() => on_agents(&mut screen, link, news).await?,
            note = told(&mut link.swept), if link.swept.is_some() => {
                link.swept = None;
                note.map_or_else(Vec::new, |note| screen.update(Input::Print(note)))
            }
            image = link.clipboard.next(), if link.clipboard.is_busy() => screen.update(image),
            report = link.reports.next(), if link.reports.is_busy() => {
                screen.update(Input::Print(report))
            }
            note = link.rules.next(), if link.rules.is_busy() => screen.update(Input::Print(note)),
        };
        for effect in effects {
            carry_out(&mut screen, link, effect).await?;
        }
        // At once: a timer would add a millisecond and another round.
        screen.draw_if_due();
        if link.draft.is_old(&screen.conversation.drafts()) {
            let at = screen.clock.now() + DRAFT;
            screen.due.draft.get_or_insert(at);
        }
    }
    link.draft.keep(screen.conversation.drafts());
    Ok(screen.leave())
}

/// Shows what was said before, and says what is to be said first.
async fn begin(screen: &mut LiveScreen, link: &mut Link, start: Start) -> anyhow::Result<()> {
    let main = screen.main;
    let agents = &mut link.agents;
    agents.watch(WatchTarget::Session(main), Some(Detail::News));
    agents.watch(WatchTarget::Agent(main), Some(Detail::All));
    let (past, opening) = match start {
        Start::Session { past, opening } => (past, opening),
        Start::Attached(agent) if agent == main => (Past::Own, Opening::Nothing),
        Start::Attached(agent) => {
            show(screen, link, agent).await?;
            (Past::Nothing, Opening::Nothing)
        }
    };
    match past {
        Past::Nothing => {}
        Past::Own => {
            let (inherited, entries, next) = link.tail(main).await?;
            screen.has_said = next > 0;
            screen.update(Input::Inherited(inherited));
            screen.update(Input::Entries { entries, next });
        }
        Past::Of(session, copied) => {
            screen.origin = Some((session, copied));
            let inherited = link.copied(session, copied).await?;
            screen.update(Input::Inherited(inherited));
        }
    }
    for (agent, draft) in link.draft.left() {
        screen.update(Input::KeptDraft(agent, draft));
    }
    link.agents.send(Command::List {
        what: ListKind::Commands,
        part: String::new(),
    });
    match opening {
        Opening::Nothing => {}
        Opening::Prompt(words) => say(screen, link, main, (words, Vec::new()))?,
        Opening::Rewound(point) => {
            screen.update(Input::Print(point.note()));
            screen.update(Input::Draft(point.words));
        }
    }
    Ok(())
}

/// Waits for what is typed.
async fn typed(input: &mut Option<TerminalInput>) -> Option<TerminalEvent> {
    match input {
        Some(input) => input.next().await?.ok(),
        None => std::future::pending().await,
    }
}

/// Waits until something is to be done by time.
async fn sleep(clock: &SystemClock, due: Option<Duration>) {
    match due {
        Some(due) => clock.sleep(due).await,
        None => std::future::pending().await,
    }
}

/// Handles what comes from the terminal.
fn on_terminal(screen: &mut LiveScreen, event: TerminalEvent) -> Vec<Effect> {
    let effects = match event {
        TerminalEvent::Key(key) => screen.update(Input::Key(key)),
        TerminalEvent::Paste(text) => screen.update(Input::Paste(text)),
        TerminalEvent::Resize(..) => {
            screen.resized(size());
            return Vec::new();
        }
        TerminalEvent::FocusGained => return screen.update(Input::Focus(true)),
        TerminalEvent::FocusLost => return screen.update(Input::Focus(false)),
        TerminalEvent::Mouse(_) => return Vec::new(),
    };
    // A key never waits for the time of a frame, only for the one that is being written.
    screen.due.frame = Some(screen.clock.now());
    screen.draw_if_due();
    effects
}

/// Handles what agents do, all that is there.
async fn on_agents(
    screen: &mut LiveScreen,
    link: &mut Link,
    first: AgentNews,
) -> anyhow::Result<Vec<Effect>> {
    let mut effects = on_news(screen, link, first).await?;
    for _ in 1..EVENTS {
        let Some(news) = link.agents.try_next() else {
            break;
        };
        effects.extend(on_news(screen, link, news).await?);
    }
    Ok(effects)
}
