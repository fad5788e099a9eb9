//! The loop of a conversation: keys, events and time come in, frames and commands go out.

use std::process::ExitCode;
use std::time::Duration;

use crossterm::event::Event as TerminalEvent;
use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{AgentFilter, Page};
use posse_protocol::{AgentId, Command, Detail, ListKind, WatchTarget};
use posse_runtime::session::branch::CopiedHistory;
use posse_tui::board::{BoardScreen, Scope};
use posse_tui::conversation::{AttachedImage, Effect, Input, Report, Request};
use posse_tui::terminal::TerminalInput;

use super::agent_link::{AgentLink, AgentNews};
use super::init::{self, InitStep};
use super::link::Link;
use super::live_screen::{Ended, Ending, LiveScreen};
use super::rewind::{self, RewindPoint};
use super::{Opening, Past, WantedSession, editor, images};
use crate::assemble::run_config::SessionChoice;
use crate::board::{self, BoardEnd, BoardPlace, BoardView, transcript_pager};
use crate::config::kept_rules::NewRules;
use crate::definitions::slash::SlashError;
use crate::error;
use crate::headless::event_loop::{next, told};
use crate::headless::input::stdin::{StdinLine, StdinLines};
use crate::headless::signals::Signals;
use crate::headless::stop;
use crate::headless::terminal::size;
use crate::select::sessions;

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
    let main = screen.main;
    let agents = &mut link.agents;
    agents.watch(WatchTarget::Session(main), Some(Detail::News));
    agents.watch(WatchTarget::Agent(main), Some(Detail::All));
    let (past, opening) = match start {
        Start::Session { past, opening } => (past, opening),
        Start::Attached(agent) if agent == main => (Past::Own, Opening::Nothing),
        Start::Attached(agent) => {
            show(&mut screen, link, agent).await?;
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
        Opening::Prompt(words) => say(&mut screen, link, main, (words, Vec::new()))?,
        Opening::Rewound(point) => {
            screen.update(Input::Print(point.note()));
            screen.update(Input::Draft(point.words));
        }
    }
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

async fn on_news(
    screen: &mut LiveScreen,
    link: &Link,
    news: AgentNews,
) -> anyhow::Result<Vec<Effect>> {
    match news {
        AgentNews::Event(event) => return Ok(screen.update(Input::Event(event))),
        AgentNews::Behind => {
            let from = screen.conversation.next_entry();
            let agent = screen.conversation.shown_agent();
            let (entries, next) = link.since(agent, from).await?;
            screen.update(Input::Entries { entries, next });
        }
        AgentNews::Refused { error, prompt } => {
            // What was typed meanwhile stays.
            if let Some(prompt) = prompt.filter(|_| screen.conversation.draft().is_empty()) {
                screen.update(Input::Draft(prompt));
            }
            screen.update(Input::Notice(error));
        }
        AgentNews::Gone => {
            let (words, code) = match link.agents {
                AgentLink::Here(_) => ("the agent has ended", error::FAILED),
                AgentLink::There(_) => ("no longer running in that process", 0),
            };
            screen.update(Input::Print(words.into()));
            screen.ending = Some(Ending::Left(ExitCode::from(code)));
        }
    }
    Ok(Vec::new())
}

/// Sends a person's words to an agent.
fn say(
    screen: &mut LiveScreen,
    link: &mut Link,
    agent: AgentId,
    (words, images): (String, Vec<AttachedImage>),
) -> Result<(), SlashError> {
    let prompt = images::blocks(words.clone(), images);
    let warnings = link.agents.say(screen.main, agent, (prompt, words))?;
    screen.has_said = true;
    if matches!(link.agents, AgentLink::Here(_)) {
        link.draft.move_to(screen.main);
    }
    for warning in warnings {
        screen.update(Input::Print(format!("warning: {warning}")));
    }
    Ok(())
}

/// Carries out what a conversation wants.
async fn carry_out(screen: &mut LiveScreen, link: &mut Link, effect: Effect) -> anyhow::Result<()> {
    match effect {
        Effect::Send(command) => link.agents.send(command),
        Effect::Say(agent, words) => said(screen, link, agent, (words, Vec::new())),
        Effect::SayImages(agent, words, images) => said(screen, link, agent, (words, images)),
        Effect::KeepPrompt(prompt) => link.prompts.add(&prompt),
        Effect::KeepRules(accepted) => {
            link.rules
                .add(NewRules::of_answer(&accepted).into_iter().collect());
        }
        Effect::Show(agent) => show(screen, link, agent).await?,
        Effect::OpenEditor(text) => {
            let edited = match link.draft.for_editor() {
                Some(file) => away(screen, link, editor::edited(&text, &file)).await?,
                None => Err(anyhow::anyhow!("there is no directory for the draft")),
            };
            screen.update(match edited {
                Ok(text) => Input::Draft(text),
                Err(error) => Input::Notice(format!("{error:#}")),
            });
        }
        Effect::Suspend => {
            screen.give_away().await;
            stop::now(&link.store).await?;
            screen.take_again()?;
        }
        Effect::Ask(request) => asked(screen, link, request).await?,
        Effect::Leave => screen.ending = Some(Ending::Left(ExitCode::SUCCESS)),
    }
    Ok(())
}

/// Waits while something else has the terminal. What agents do meanwhile is noted, so that none of
/// them waits.
async fn away<T>(
    screen: &mut LiveScreen,
    link: &mut Link,
    other: impl Future<Output = T>,
) -> anyhow::Result<T> {
    screen.give_away().await;
    let mut other = std::pin::pin!(other);
    let mut later = Vec::new();
    let done = loop {
        let effects = tokio::select! {
            done = &mut other => break done,
            news = link.agents.next(), if screen.ending.is_none() => {
                on_news(screen, link, news).await?
            }
        };
        for effect in effects {
            match effect {
                Effect::Send(command) => link.agents.send(command),
                effect => later.push(effect),
            }
        }
    };
    screen.take_again()?;
    for effect in later {
        Box::pin(carry_out(screen, link, effect)).await?;
    }
    Ok(done)
}

/// Shows the board until the person leaves it.
async fn board(screen: &mut LiveScreen, link: &mut Link) -> anyhow::Result<()> {
    let filter = AgentFilter {
        id: Some(screen.main),
        ..AgentFilter::default()
    };
    let store = link.store.clone();
    // A session is stored with its first prompt.
    let session = store.store.agents(filter, Page::first(1)).await?.pop();
    let view = BoardView {
        scope: match session {
            Some(_) => Scope::Session,
            None => Scope::Directory,
        },
        place: BoardPlace {
            session,
            cwd: link.cwd.clone(),
        },
        screen: BoardScreen::Agents,
        notice: None,
    };
    match away(screen, link, board::run(store, view)).await?? {
        BoardEnd::Left => {}
        BoardEnd::Signalled => {
            screen.ending = Some(Ending::Left(ExitCode::from(error::INTERRUPTED)));
        }
        BoardEnd::Open(agent) => {
            let found = sessions::agent_by_prefix(&*link.store.store, &agent.to_string()).await?;
            match sessions::root_of(&*link.store.store, &found).await? == screen.main {
                true if agent != screen.conversation.shown_agent() => {
                    show(screen, link, agent).await?;
                }
                true => {}
                false => {
                    let why = format!("it belongs to another session: posse attach {agent}");
                    screen.update(Input::Notice(why));
                }
            }
        }
    }
    Ok(())
}

/// Shows another agent.
async fn show(screen: &mut LiveScreen, link: &mut Link, agent: AgentId) -> anyhow::Result<()> {
    let before = screen.conversation.shown_agent();
    link.agents.watch(WatchTarget::Agent(before), None);
    screen.update(Input::Show(agent));
    link.agents
        .watch(WatchTarget::Agent(agent), Some(Detail::All));
    let (inherited, entries, next) = link.tail(agent).await?;
    screen.update(Input::Inherited(inherited));
    screen.update(Input::Entries { entries, next });
    Ok(())
}

/// Tells an agent a person's words. What is refused is the draft again.
fn said(
    screen: &mut LiveScreen,
    link: &mut Link,
    agent: AgentId,
    words: (String, Vec<AttachedImage>),
) {
    let text = words.0.clone();
    if let Err(why) = say(screen, link, agent, words) {
        screen.update(Input::Draft(text));
        screen.update(Input::Notice(why.to_string()));
    }
}

/// Does what only the loop can do.
async fn asked(screen: &mut LiveScreen, link: &mut Link, request: Request) -> anyhow::Result<()> {
    match request {
        Request::Clear | Request::Resume(_) | Request::Prompts | Request::Rewind(_)
            if matches!(link.agents, AgentLink::There(_)) =>
        {
            let why =
                "you are attached to a running session; /quit detaches, then `posse` or `posse -r`";
            screen.update(Input::Notice(why.into()));
        }
        Request::Board | Request::Transcript if screen.plain.is_some() => {
            let why = "it needs a terminal that can do more than lines; `posse agents ps`, `posse task list` and \
                       `posse sessions show` print the same";
            screen.update(Input::Notice(why.into()));
        }
        Request::Board => board(screen, link).await?,
        Request::Transcript => {
            let agent = screen.conversation.shown_agent();
            let (store, name) = (
                link.store.clone(),
                screen.conversation.shown_name().to_owned(),
            );
            away(screen, link, transcript_pager::run(&store, agent, name)).await??;
        }
        Request::Clear => screen.ending = Some(Ending::Other(WantedSession::New)),
        Request::Resume(id) if id.is_empty() => {
            screen.ending = Some(Ending::Other(WantedSession::Asked));
        }
        Request::Resume(id) => {
            let session = WantedSession::This(SessionChoice::Id(id));
            screen.ending = Some(Ending::Other(session));
        }
        Request::ImageFile { path, pasted } => {
            for input in images::of_path(&path, pasted, &link.cwd) {
                let effects = screen.update(input);
                for effect in effects {
                    Box::pin(carry_out(screen, link, effect)).await?;
                }
            }
        }
        Request::ClipboardImage => link.clipboard.read(),
        Request::Report(Report::Permissions) => {
            let (agent, mode) = (
                screen.conversation.shown_agent(),
                screen.conversation.mode(),
            );
            screen.update(Input::Print(link.rules_of(agent, mode)));
        }
        Request::Report(report) => link.reports.add(report),
        Request::Init(improves) => match init::step(&link.cwd, improves) {
            InitStep::Ask(words) => {
                let words = Effect::Say(screen.main, words.to_owned());
                return Box::pin(carry_out(screen, link, words)).await;
            }
            InitStep::Tell(why) => {
                screen.update(Input::Print(why.to_owned()));
            }
        },
        Request::Prompts => {
            let points = rewind_points(screen, link).await?;
            screen.update(match screen.plain {
                Some(_) => Input::Print(rewind::listed(&points)),
                None => Input::Prompts(points.iter().map(RewindPoint::item).collect()),
            });
        }
        Request::Rewind(number) => {
            let points = rewind_points(screen, link).await?;
            match points.into_iter().nth(number.saturating_sub(1)) {
                Some(point) => {
                    screen.ending = Some(Ending::Other(WantedSession::Before(point)));
                }
                None => {
                    let why = format!("there is no prompt {number}; /rewind lists them");
                    screen.update(Input::Notice(why));
                }
            }
        }
        Request::Cost => {
            let cost = link.cost(screen.main).await?;
            screen.update(Input::Print(cost));
        }
        Request::Tasks => {
            let tasks = link.tasks(screen.main).await?;
            screen.update(Input::Print(tasks));
        }
        Request::Export(file) => {
            let agent = screen.conversation.shown_agent();
            let note = link.export(agent, &file).await;
            screen.update(Input::Notice(note));
        }
    }
    Ok(())
}

/// Returns the prompts to which the person can return.
async fn rewind_points(screen: &LiveScreen, link: &Link) -> anyhow::Result<Vec<RewindPoint>> {
    let store = &*link.store.store;
    match (screen.has_said, screen.origin) {
        (true, _) => rewind::points(store, screen.main, CopiedHistory::All).await,
        // Nothing of this session is in the store yet.
        (false, Some((session, copied))) => rewind::points(store, session, copied).await,
        (false, None) => Ok(Vec::new()),
    }
}
