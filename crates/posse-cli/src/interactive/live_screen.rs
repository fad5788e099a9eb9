//! The screen of a conversation: what is drawn when, and how the terminal is taken and given back.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_protocol::AgentId;
use posse_runtime::session::branch::CopiedHistory;
use posse_tui::conversation::{self, Beginning, Conversation, Effect, Input, PlainView, Size};
use posse_tui::terminal::{FrameWriter, InlineTerminal, RawTerminal, TerminalInput};
use posse_tui::theme::Theme;
use tokio::sync::Notify;

use super::link::Link;
use super::{WantedSession, alert};
use crate::headless::terminal::size;

/// Time between two frames, unless a key was pressed.
const FRAME: Duration = Duration::from_millis(12);
/// Time after a change of the size in which nothing is drawn: terminals reflow meanwhile.
const RESIZED: Duration = Duration::from_millis(100);
/// Time between two frames of what only grows older.
const TICK: Duration = Duration::from_secs(1);
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
    pub(super) conversation: Conversation,
    pub(super) main: AgentId,
    terminal: InlineTerminal,
    writer: FrameWriter,
    pub(super) written: Arc<Notify>,
    raw: Option<RawTerminal>,
    pub(super) input: Option<TerminalInput>,
    /// The conversation in lines alone, if the person wants that.
    pub(super) plain: Option<PlainView>,
    size: Size,
    pub(super) clock: SystemClock,
    /// What is to be done at which time.
    pub(super) due: Due,
    pub(super) ending: Option<Ending>,
    pub(super) has_said: bool,
    /// The session of which this is a branch, and how much of it.
    pub(super) origin: Option<(AgentId, CopiedHistory)>,
}

/// Times at which something is to be done.
#[derive(Default)]
pub(super) struct Due {
    /// When the next frame is drawn, if something has changed.
    pub(super) frame: Option<Duration>,
    /// When the last one was.
    last_frame: Duration,
    /// When what grows older is drawn again.
    tick: Option<Duration>,
    /// When the draft is kept.
    pub(super) draft: Option<Duration>,
}

impl LiveScreen {
    /// Begins a conversation on a terminal in raw mode; in lines alone if it is not.
    pub(super) fn begin(
        beginning: Beginning,
        raw: Option<RawTerminal>,
        theme: Theme,
    ) -> io::Result<Self> {
        let clock = SystemClock::default();
        let written = Arc::new(Notify::new());
        let told = Arc::clone(&written);
        let (main, size) = (beginning.main, beginning.size);
        let mut screen = Self {
            conversation: Conversation::new(beginning, 0),
            main,
            terminal: InlineTerminal::new(theme),
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
    pub(super) fn update(&mut self, input: Input) -> Vec<Effect> {
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

    pub(super) fn resized(&mut self, size: Size) {
        self.size = size;
        let now = self.now_ms();
        conversation::update(&mut self.conversation, Input::Size(size), now);
        self.due.frame = Some(self.clock.now() + RESIZED);
    }

    /// Gives the terminal back for good.
    pub(super) fn leave(mut self) -> Ended {
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
    pub(super) async fn give_away(&mut self) {
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
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        self.raw = Some(RawTerminal::enter()?);
        self.input = Some(TerminalInput::new());
        self.size = size();
        let now = self.now_ms();
        conversation::update(&mut self.conversation, Input::Size(self.size), now);
        self.due.frame = Some(self.clock.now());
        Ok(())
    }

    /// Returns the time until something is to be done.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let frame = self.due.frame.filter(|_| self.writer.is_ready());
        let due = [frame, self.due.tick, self.due.draft];
        let next = due.into_iter().flatten().min()?;
        Some(next.saturating_sub(self.clock.now()))
    }

    /// Does what is to be done by now.
    pub(super) fn on_time(&mut self, link: &mut Link) {
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
    pub(super) fn draw_if_due(&mut self) {
        let now = self.clock.now();
        if self.due.frame.is_some_and(|at| at <= now) && self.writer.is_ready() {
            self.draw();
        }
    }
}
