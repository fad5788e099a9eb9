//! `posse board`: everybody at work, on the whole screen of a terminal.
//!
//! It reads the store and follows its feeds; what is done at it goes to the agents by the sockets of
//! their processes, or by the store.

mod actions;
mod reader;
mod realm;
mod stale_costs;
pub(crate) mod transcript_pager;
mod whole_screen;
mod worktrees;

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::Event as TerminalEvent;
use posse_port::clock::{Clock as _, SystemClock};
use posse_protocol::AgentId;
use posse_tui::board::{self, Board, BoardBeginning, BoardEffect, BoardInput, BoardScreen, Scope};

use self::actions::BoardActions;
pub(crate) use self::reader::BoardPlace;
use self::reader::BoardReader;
use self::whole_screen::{ScreenEvent, WholeScreen};
use self::worktrees::WantedReading;
use crate::assemble::reviewed_worktrees::no_worktree;
use crate::assemble::store::OpenStore;
use crate::config::look::Look;
use crate::headless::editor::edit;
use crate::headless::signals::Signals;
use crate::headless::stop;
use crate::headless::terminal::size;
use crate::output::short_path;
use crate::output::time::now_ms;

/// Time between two readings of what has happened.
const PAUSE: Duration = Duration::from_millis(100);
/// Time after which ages are drawn again.
const TICK: Duration = Duration::from_secs(10);

/// How a board was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoardEnd {
    /// The person left.
    Left,
    /// A signal ended it.
    Signalled,
    /// The conversation with an agent is wanted.
    Open(AgentId),
}

/// What a board shows first.
pub(crate) struct BoardView {
    pub(crate) place: BoardPlace,
    pub(crate) scope: Scope,
    pub(crate) screen: BoardScreen,
    /// A line for the person.
    pub(crate) notice: Option<String>,
    pub(crate) look: Look,
}

/// A board on a terminal.
struct LiveBoard {
    board: Board,
    reader: BoardReader,
    actions: BoardActions,
    clock: SystemClock,
    /// When the store was read last.
    read: Duration,
    /// True if something has changed since the last frame.
    is_dirty: bool,
    ending: Option<BoardEnd>,
    look: Look,
}

/// Shows a board until the person leaves it.
pub(crate) async fn run(open: OpenStore, view: BoardView) -> anyhow::Result<BoardEnd> {
    let title = short_path(&view.place.cwd);
    let beginning = BoardBeginning {
        size: size(),
        title,
        scope: view.scope,
        screen: view.screen,
        keys: view.look.keys.board.clone(),
    };
    let mut live = LiveBoard {
        board: Board::new(beginning),
        reader: BoardReader::new(Arc::clone(&open.store), view.place, view.scope),
        actions: BoardActions::new(open),
        clock: SystemClock::default(),
        read: Duration::ZERO,
        is_dirty: true,
        ending: None,
        look: view.look.clone(),
    };
    let first = live.reader.read(view.scope).await?;
    live.update_all(first);
    if let Some(notice) = view.notice {
        live.update(BoardInput::Notice(notice));
    }
    live.fill().await?;
    let mut screen = WholeScreen::take(&view.look)?;
    let ended = live.drive(&mut screen).await;
    screen.leave().await;
    ended?;
    Ok(live.ending.unwrap_or(BoardEnd::Left))
}

impl LiveBoard {
    async fn drive(&mut self, screen: &mut WholeScreen) -> anyhow::Result<()> {
        let mut signals = Signals::new()?;
        while self.ending.is_none() {
            self.draw(screen);
            let rest = (self.read + PAUSE).saturating_sub(self.clock.now());
            let effects = tokio::select! {
                // Keys are drawn before anything else.
                biased;
                event = screen.next() => match event {
                    Some(ScreenEvent::Typed(event)) => self.on_terminal(event),
                    Some(ScreenEvent::Written) => continue,
                    None => {
                        self.ending = Some(BoardEnd::Signalled);
                        Vec::new()
                    }
                },
                () = signals.next() => {
                    self.ending = Some(BoardEnd::Signalled);
                    Vec::new()
                }
                // What happens quickly is read together.
                news = async {
                    self.clock.sleep(rest).await;
                    self.reader.next().await
                } => {
                    let inputs = self.reader.on_news(news).await;
                    self.read = self.clock.now();
                    self.shown(inputs)
                }
                () = self.clock.sleep(TICK) => self.update(BoardInput::Tick),
            };
            for effect in effects {
                self.carry_out(effect, screen).await?;
            }
            self.fill().await?;
        }
        Ok(())
    }

    /// Shows what was read, or why it could not be.
    fn shown(&mut self, read: anyhow::Result<Vec<BoardInput>>) -> Vec<BoardEffect> {
        match read {
            Ok(inputs) => self.update_all(inputs),
            Err(error) => self.update(BoardInput::Notice(format!("{error:#}"))),
        }
    }

    fn update(&mut self, input: BoardInput) -> Vec<BoardEffect> {
        self.is_dirty = true;
        board::update(&mut self.board, input, now_ms())
    }

    fn update_all(&mut self, inputs: Vec<BoardInput>) -> Vec<BoardEffect> {
        let each = inputs.into_iter().map(|input| self.update(input));
        each.collect::<Vec<_>>().concat()
    }

    /// Reads what is on the screen and not known.
    async fn fill(&mut self) -> anyhow::Result<()> {
        let inputs = self.reader.fill(&self.board).await?;
        self.update_all(inputs);
        Ok(())
    }

    fn on_terminal(&mut self, event: TerminalEvent) -> Vec<BoardEffect> {
        match event {
            TerminalEvent::Key(key) => self.update(BoardInput::Key(key)),
            TerminalEvent::Paste(text) => self.update(BoardInput::Paste(text)),
            TerminalEvent::Resize(..) => self.update(BoardInput::Size(size())),
            TerminalEvent::Mouse(event) => self.update(BoardInput::Mouse(event)),
            TerminalEvent::FocusGained | TerminalEvent::FocusLost => Vec::new(),
        }
    }

    /// Draws the next frame, if something has changed and the last one is written.
    fn draw(&mut self, screen: &mut WholeScreen) {
        if self.is_dirty && screen.is_ready() {
            let frame = board::view(&mut self.board, now_ms());
            screen.draw(frame.cells, frame.caret);
            self.is_dirty = false;
        }
    }

    /// Carries out what the person wants.
    async fn carry_out(
        &mut self,
        effect: BoardEffect,
        screen: &mut WholeScreen,
    ) -> anyhow::Result<()> {
        let name = |agent: AgentId| {
            let found = self.reader.realm_of(agent);
            found.map_or_else(|| agent.to_string(), |(_, realm)| realm.name(agent))
        };
        let done = match effect {
            BoardEffect::Leave => {
                self.ending = Some(BoardEnd::Left);
                return Ok(());
            }
            BoardEffect::Open(agent) => {
                self.ending = Some(BoardEnd::Open(agent));
                return Ok(());
            }
            BoardEffect::Peek(agent) => {
                self.reader.peek(agent);
                return Ok(());
            }
            BoardEffect::ChangeScope(scope) => {
                let inputs = self.reader.read(scope).await;
                self.shown(inputs);
                return Ok(());
            }
            BoardEffect::Suspend => {
                screen.give_back().await;
                stop::now(&self.actions.open).await?;
                screen.take_again()?;
                self.update(BoardInput::Size(size()));
                return Ok(());
            }
            BoardEffect::Pager(agent) => {
                let name = name(agent);
                screen.give_back().await;
                let shown =
                    transcript_pager::run(&self.actions.open, &self.look, agent, name).await;
                screen.take_again()?;
                self.update(BoardInput::Size(size()));
                match shown {
                    Ok(()) => return Ok(()),
                    Err(error) => Err(error),
                }
            }
            BoardEffect::Interrupt(agent) => self.actions.interrupt(agent, &name(agent)).await,
            BoardEffect::Stop(agent) => {
                let found = self.reader.realm_of(agent);
                let main = found.map_or(agent, |(_, realm)| realm.root_of(agent));
                self.actions.stop(agent, main, &name(agent)).await
            }
            BoardEffect::Message(agent, words) => {
                let name = name(agent);
                self.actions
                    .message(&self.reader, agent, &name, words)
                    .await
            }
            BoardEffect::Answer {
                agent,
                question,
                answer,
            } => {
                self.actions
                    .answer(&self.reader, agent, question, answer)
                    .await
            }
            BoardEffect::KeepRules(agent, rules) => {
                match self.actions.keep_rules(&self.reader, agent, &rules) {
                    Some(note) => Ok(note),
                    None => return Ok(()),
                }
            }
            BoardEffect::ReadWorktrees => {
                self.reader.worktrees.add_all();
                return Ok(());
            }
            BoardEffect::ReadReview(agent) => {
                self.reader.worktrees.want(WantedReading::Review(agent));
                return Ok(());
            }
            BoardEffect::ReadLoss(agent) => {
                self.reader.worktrees.want(WantedReading::Loss(agent));
                return Ok(());
            }
            BoardEffect::Discard { agent, loss } => {
                let wanted = WantedReading::Discard(agent, loss);
                self.reader.worktrees.want(wanted);
                return Ok(());
            }
            BoardEffect::SendReview(agent, words) => {
                let name = name(agent);
                let sent = self.actions.message(&self.reader, agent, &name, words);
                let sent = sent.await;
                if sent.is_ok() {
                    self.update(BoardInput::ReviewSent(agent));
                }
                sent
            }
            BoardEffect::Edit { agent, file } => match self.edited(screen, agent, file).await? {
                Ok(()) => return Ok(()),
                Err(error) => Err(error),
            },
            BoardEffect::AddTask { list, subject } => self.actions.add_task(list, subject).await,
            BoardEffect::DeleteTask { list, task } => self.actions.delete_task(list, task).await,
        };
        let notice = done.unwrap_or_else(|error| format!("{error:#}"));
        self.update(BoardInput::Notice(notice));
        Ok(())
    }

    /// Opens the worktree of an agent, or a file in it, in the person's editor.
    async fn edited(
        &mut self,
        screen: &mut WholeScreen,
        agent: AgentId,
        file: Option<String>,
    ) -> anyhow::Result<anyhow::Result<()>> {
        let Some(mut path) = self.reader.worktrees.path(agent) else {
            return Ok(Err(no_worktree()));
        };
        path.extend(file);
        screen.give_back().await;
        let edited = edit(&path).await;
        screen.take_again()?;
        self.update(BoardInput::Size(size()));
        self.reader.worktrees.add_changed([agent]);
        Ok(edited)
    }
}
