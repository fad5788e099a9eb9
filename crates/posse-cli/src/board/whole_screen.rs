//! The whole screen of a terminal: taken, drawn on, and given back as it was.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::Event as TerminalEvent;
use posse_tui::terminal::{
    Buffer, FrameWriter, FullScreen, Position, RawTerminal, TerminalInput, copied,
};
use tokio::sync::Notify;

use crate::config::look::Look;

/// Time that is waited for a terminal that takes nothing.
const PATIENCE: Duration = Duration::from_millis(200);

/// The whole screen.
pub(super) struct WholeScreen {
    terminal: FullScreen,
    writer: FrameWriter,
    written: Arc<Notify>,
    /// While it is taken.
    taken: Option<(RawTerminal, TerminalInput)>,
}

impl WholeScreen {
    /// Takes it.
    pub(super) fn take(look: &Look) -> io::Result<Self> {
        let written = Arc::new(Notify::new());
        let told = Arc::clone(&written);
        let mut screen = Self {
            terminal: match look.mouse {
                true => FullScreen::new(look.theme).with_mouse(),
                false => FullScreen::new(look.theme),
            },
            writer: FrameWriter::start(move || told.notify_one())?,
            written,
            taken: None,
        };
        screen.take_again()?;
        Ok(screen)
    }

    /// Takes it again.
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        self.taken = Some((RawTerminal::enter()?, TerminalInput::new()));
        self.writer.write(self.terminal.enter());
        Ok(())
    }

    /// Returns true if the last frame is written.
    pub(super) fn is_ready(&self) -> bool {
        self.writer.is_ready()
    }

    /// Draws a frame. Only when it is ready.
    pub(super) fn draw(&mut self, cells: Buffer, caret: Option<Position>) {
        self.writer.write(self.terminal.draw(cells, caret));
    }

    /// Copies a text to the clipboard, if the terminal takes it.
    pub(super) fn copy(&mut self, text: &str) {
        if self.is_ready() {
            self.writer.write(copied(text));
        }
    }

    /// Waits for what is typed, or until the last frame is written; none if there is nobody to
    /// type any more. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<ScreenEvent> {
        let Some((_, input)) = &mut self.taken else {
            return None;
        };
        tokio::select! {
            typed = input.next() => typed?.ok().map(ScreenEvent::Typed),
            () = self.written.notified() => Some(ScreenEvent::Written),
        }
    }

    /// Gives it back for a while. A terminal that takes nothing is not waited for.
    pub(super) async fn give_back(&mut self) {
        let Some((raw, input)) = self.taken.take() else {
            return;
        };
        drop(input);
        let left = async {
            self.ready().await;
            self.writer.write(self.terminal.leave());
            self.ready().await;
        };
        // Given back all the same.
        let _ = tokio::time::timeout(PATIENCE, left).await;
        drop(raw);
    }

    /// Gives it back for good.
    pub(super) async fn leave(mut self) {
        self.give_back().await;
        self.writer.finish(PATIENCE);
    }

    async fn ready(&self) {
        while !self.writer.is_ready() {
            self.written.notified().await;
        }
    }
}

impl Drop for WholeScreen {
    /// Leaves it if nobody has: what showed it is not wanted any more.
    fn drop(&mut self) {
        if let Some((raw, input)) = self.taken.take() {
            drop(input);
            self.writer.last(self.terminal.leave(), PATIENCE);
            drop(raw);
        }
    }
}

/// What comes from the terminal.
pub(super) enum ScreenEvent {
    /// Something is typed, or the size has changed.
    Typed(TerminalEvent),
    /// The last frame is written.
    Written,
}
