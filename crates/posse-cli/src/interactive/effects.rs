//! What a conversation wants done, and what its agents have done meanwhile.

use std::process::ExitCode;

use posse_port::store::{AgentFilter, Page};
use posse_protocol::{AgentId, Detail, WatchTarget};
use posse_runtime::session::branch::CopiedHistory;
use posse_tui::board::{BoardScreen, Scope};
use posse_tui::conversation::{AttachedImage, Effect, Input, Report, Request};

use super::agent_link::{AgentLink, AgentNews};
use super::init::{self, InitStep};
use super::link::Link;
use super::live_screen::{Ending, LiveScreen};
use super::rewind::{self, RewindPoint};
use super::{WantedSession, editor, images};
use crate::assemble::run_config::SessionChoice;
use crate::board::{self, BoardEnd, BoardPlace, BoardView, transcript_pager};
use crate::config::kept_rules::NewRules;
use crate::definitions::slash::SlashError;
use crate::error;
use crate::headless::stop;
use crate::select::sessions;

/// Handles what an agent has done.
pub(super) async fn on_news(
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
pub(super) fn say(
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
pub(super) async fn carry_out(
    screen: &mut LiveScreen,
    link: &mut Link,
    effect: Effect,
) -> anyhow::Result<()> {
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
        look: link.look.clone(),
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
pub(super) async fn show(
    screen: &mut LiveScreen,
    link: &mut Link,
    agent: AgentId,
) -> anyhow::Result<()> {
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
            let (store, look, name) = (
                link.store.clone(),
                link.look.clone(),
                screen.conversation.shown_name().to_owned(),
            );
            let shown = transcript_pager::run(&store, &look, agent, name);
            away(screen, link, shown).await??;
        }
        Request::Clear => screen.ending = Some(Ending::Other(WantedSession::New)),
        Request::Resume(id) if id.is_empty() => {
            screen.ending = Some(Ending::Other(WantedSession::Asked));
        }
        Request::Resume(id) => {
            let session = WantedSession::This(SessionChoice::Id(id));
            screen.ending = Some(Ending::Other(session));
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
        request => return Box::pin(about_session(screen, link, request)).await,
    }
    Ok(())
}

/// Does what is about prompts, images and what is in force.
async fn about_session(
    screen: &mut LiveScreen,
    link: &mut Link,
    request: Request,
) -> anyhow::Result<()> {
    match request {
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
        Request::Report(Report::Servers) => {
            screen.update(Input::Print(link.servers()));
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
        // The others are handled before.
        _ => {}
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
