//! Keys, pastes and sizes, from the terminal.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crossterm::event::{Event, EventStream};
use futures_core::Stream;

/// What comes from the terminal. Nothing is read while none of these lives: an editor has the
/// terminal for itself.
pub struct TerminalInput {
    events: EventStream,
    call: Arc<WakeCall>,
}

impl TerminalInput {
    /// Begins to read.
    pub fn new() -> Self {
        Self {
            events: EventStream::new(),
            call: Arc::default(),
        }
    }

    /// Waits for what comes next; none if the terminal is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<io::Result<Event>> {
        poll_fn(|context| {
            // A stream that is asked while it waits spins on a lock that its own thread holds. So it
            // is not asked when something else woke this task.
            if !self.call.take(context.waker()) {
                return Poll::Pending;
            }
            let waker = Waker::from(Arc::clone(&self.call));
            let next = Pin::new(&mut self.events).poll_next(&mut Context::from_waker(&waker));
            if next.is_ready() {
                // More may have come with it.
                self.call.state().is_asleep = false;
            }
            next
        })
        .await
    }
}

impl Default for TerminalInput {
    fn default() -> Self {
        Self::new()
    }
}

/// Remembers whether the stream has woken its task.
#[derive(Default)]
struct WakeCall(Mutex<CallState>);

#[derive(Default)]
struct CallState {
    /// True while the stream will wake the task before it has something.
    is_asleep: bool,
    task: Option<Waker>,
}

impl WakeCall {
    fn state(&self) -> std::sync::MutexGuard<'_, CallState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the stream is to be asked. Otherwise `task` is woken when it is.
    fn take(&self, task: &Waker) -> bool {
        let mut state = self.state();
        match &mut state.task {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
        !std::mem::replace(&mut state.is_asleep, true)
    }
}

impl Wake for WakeCall {
    fn wake(self: Arc<Self>) {
        let mut state = self.state();
        state.is_asleep = false;
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}
