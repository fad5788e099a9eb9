//! Keys, pastes and sizes, from the terminal.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use crossterm::event::{Event, EventStream};
use futures_core::Stream;

/// What comes from the terminal. Nothing is read while none of these lives: an editor has the
/// terminal for itself.
pub struct TerminalInput(EventStream);

impl TerminalInput {
    /// Begins to read.
    pub fn new() -> Self {
        Self(EventStream::new())
    }

    /// Waits for what comes next; none if the terminal is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<io::Result<Event>> {
        poll_fn(|context| Pin::new(&mut self.0).poll_next(context)).await
    }
}

impl Default for TerminalInput {
    fn default() -> Self {
        Self::new()
    }
}
