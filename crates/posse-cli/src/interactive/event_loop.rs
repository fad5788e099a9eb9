//! The loop of a conversation: keys, events and time come in, frames and commands go out.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::Event as TerminalEvent;
use posse_port::clock::{Clock as _, SystemClock};
use posse_protocol::{AgentId, Command, Detail, ListKind, WatchTarget};
use posse_runtime::session::branch::CopiedHistory;
use posse_tui::conversation::{
    self, AttachedImage, Beginning, Conversation, Effect, Input, PlainView, Report, Request, Size,
};
use posse_tui::terminal::{FrameWriter, InlineTerminal, RawTerminal, TerminalInput};
use tokio::sync::Notify;

use super::agent_link::{AgentLink, AgentNews};
use super::init::{self, InitStep};
use super::link::Link;
use super::rewind::{self, RewindPoint};
use super::{Opening, Past, WantedSession, alert, editor, images};
use crate::assemble::run_config::SessionChoice;
use crate::config::kept_rules::NewRules;
use crate::definitions::slash::SlashError;
use crate::error;
use crate::headless::event_loop::{next, told};
use crate::headless::input::stdin::{StdinLine, StdinLines};
use crate::headless::signals::Signals;
use crate::headless::stop;
use crate::headless::terminal::size;

/// Time between two frames, unless a key was pressed.
const FRAME: Duration = Duration::from_millis(12);
/// Time after a change of the size in which nothing is drawn: terminals reflow meanwhile.
const RESIZED: Duration = Duration::from_millis(100);
/// Time between two frames of what only grows older.
const TICK: Duration = Duration::from_secs(1);
/// Time after which a changed draft is kept.
const DRAFT: Duration = Duration::from_millis(500);
/// Number of events that are handled before the next frame.
const EVENTS: usize = 256;
/// Time that is waited for a terminal that takes nothing.
const PATIENCE: Duration = Duration::from_millis(200);

/// How a conversation ended.
pub(super) enum Ending {
    /// The person left.
    Left(ExitCode),
    /// Another session is wanted: a new one, or this.
    Other(WantedSession),
}

/// The end of a conversation.
pub(super) struct Ended {
    pub(super) ending: Ending,
    /// True if the session has something that can be continued.
    pub(super) has_said: bool,
}

/// A conversation on a terminal.
pub(super) struct LiveScreen {
    conversation: Conversation,
    main: AgentId,
    terminal: InlineTerminal,
    writer: FrameWriter,
    written: Arc<Notify>,
    raw: Option<RawTerminal>,
    input: Option<TerminalInput>,
    /// The conversation in lines alone, if the person wants that.
    plain: Option<PlainView>,
    size: Size,
    clock: SystemClock,
    /// What is to be done at which time.
    due: Due,
    ending: Option<Ending>,
    has_said: bool,
    /// The session of which this is a branch, and how much of it.
    origin: Option<(AgentId, CopiedHistory)>,
}

/// Times at which something is to be done.
#[derive(Default)]
struct Due {
    /// When the next frame is drawn, if something has changed.
    frame: Option<Duration>,
    /// When the last one was.
    last_frame: Duration,
    /// When what grows older is drawn again.
    tick: Option<Duration>,
    /// When the draft is kept.
    draft: Option<Duration>,
}

impl LiveScreen {
    /// Begins a conversation on a terminal in raw mode; in lines alone if it is not.
    pub(super) fn begin(
        beginning: Beginning,
        raw: Option<RawTerminal>,
        colour: bool,
    ) -> io::Result<Self> {
        let clock = SystemClock::default();
        let written = Arc::new(Notify::new());
        let told = Arc::clone(&written);
        let (main, size) = (beginning.main, beginning.size);
        let mut screen = Self {
            conversation: Conversation::new(beginning, 0),
            main,
            terminal: InlineTerminal::new(colour),
            writer: FrameWriter::start(move || told.notify_one())?,
            written,
            plain: raw.is_none().then(PlainView::default),
            input: raw.is_some().then(TerminalInput::new),
            raw,
            size,
            clock,
            due: Due::default(),
            ending: None,
            has_said: false,
            origin: None,
        };
        screen.draw();
        Ok(screen)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millis()).unwrap_or(u64::MAX)
    }

    /// Changes the conversation, and returns what is to be done.
    fn update(&mut self, input: Input) -> Vec<Effect> {
        let now = self.now_ms();
        let effects = conversation::update(&mut self.conversation, input, now);
        let next = self.due.last_frame + FRAME;
        self.due.frame.get_or_insert(next);
        effects
    }

    /// Draws the next frame.
    fn draw(&mut self) {
        let (now, now_ms) = (self.clock.now(), self.now_ms());
        if let Some(plain) = &mut self.plain {
            let news = plain.news(&mut self.conversation);
            self.writer.write(news);
            self.due.frame = None;
            self.due.last_frame = now;
            return;
        }
        let current = size();
        if current != self.size {
            self.resized(current);
            return;
        }
        let frame = conversation::view(&mut self.conversation, now_ms);
        let mut bytes = self.terminal.draw(frame, now_ms);
        if let Some(alert) = self.conversation.take_alert() {
            bytes.extend(alert::bytes(alert));
        }
        self.writer.write(bytes);
        self.due.frame = None;
        self.due.last_frame = now;
        self.due.tick = self.conversation.is_moving().then_some(now + TICK);
    }

    fn resized(&mut self, size: Size) {
        self.size = size;
        let now = self.now_ms();
        conversation::update(&mut self.conversation, Input::Size(size), now);
        self.due.frame = Some(self.clock.now() + RESIZED);
    }

    /// Gives the terminal back for good.
    fn leave(mut self) -> Ended {
        let now = self.now_ms();
        while !self.writer.is_ready() {
            std::thread::yield_now();
            if self.now_ms() - now > PATIENCE.as_millis() as u64 {
                break;
            }
        }
        match &mut self.plain {
            Some(plain) => {
                let news = plain.news(&mut self.conversation);
                self.writer.write(news);
            }
            None => {
                let last = self.conversation.take_printed();
                let bytes = self.terminal.leave(&last, self.size.columns, now);
                self.writer.write(bytes);
            }
        }
        self.writer.finish(PATIENCE);
        drop(self.raw);
        Ended {
            ending: self.ending.unwrap_or(Ending::Left(ExitCode::SUCCESS)),
            has_said: self.has_said,
        }
    }

    /// Gives the terminal away for a while. The live region is removed.
    async fn give_away(&mut self) {
        while !self.writer.is_ready() {
            self.written.notified().await;
        }
        self.input = None;
        let now = self.now_ms();
        let last = self.conversation.take_printed();
        self.writer
            .write(self.terminal.leave(&last, self.size.columns, now));
        while !self.writer.is_ready() {
            self.written.notified().await;
        }
        self.raw = None;
    }

    /// Takes the terminal again.
    fn take_again(&mut self) -> io::Result<()> {
        self.raw = Some(RawTerminal::enter()?);
        self.input = Some(TerminalInput::new());
        self.size = size();
        let now = self.now_ms();
        conversation::update(&mut self.conversation, Input::Size(self.size), now);
        self.due.frame = Some(self.clock.now());
        Ok(())
    }

    /// Returns the time until something is to be done.
    fn next_due(&self) -> Option<Duration> {
        let frame = self.due.frame.filter(|_| self.writer.is_ready());
        let due = [frame, self.due.tick, self.due.draft];
        let next = due.into_iter().flatten().min()?;
        Some(next.saturating_sub(self.clock.now()))
    }

    /// Does what is to be done by now.
    fn on_time(&mut self, link: &mut Link) {
        let now = self.clock.now();
        if self.due.tick.is_some_and(|at| at <= now) {
            self.due.tick = None;
            self.update(Input::Tick);
        }
        if self.due.draft.is_some_and(|at| at <= now) {
            self.due.draft = None;
            link.draft.keep(self.conversation.drafts());
        }
        self.draw_if_due();
    }

    /// Draws the next frame if its time has come.
    fn draw_if_due(&mut self) {
        let now = self.clock.now();
        if self.due.frame.is_some_and(|at| at <= now) && self.writer.is_ready() {
            self.draw();
        }
    }
}

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
            screen.give_away().await;
            let edited = match link.draft.for_editor() {
                Some(file) => editor::edited(&text, &file).await,
                None => Err(anyhow::anyhow!("there is no directory for the draft")),
            };
            screen.take_again()?;
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
