//! Keys, pastes and sizes, from the terminal.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crossterm::event::{Event, EventStream};
use futures_core::Stream;

/// What comes from the terminal. The next one goes on where one was dropped, and no key is lost
/// between them; until [`stop`](Self::stop) the terminal is read.
pub struct TerminalInput {
    /// Always there until this is dropped.
    reader: Option<Reader>,
}

/// Reads the terminal.
struct Reader {
    events: EventStream,
    call: Arc<WakeCall>,
}

/// The reader between two screens. A stream that is dropped may take the news of a key with it: its
/// thread hears of the end and of the key together, and looks at the first alone.
static BETWEEN: Mutex<Option<Reader>> = Mutex::new(None);

fn between() -> std::sync::MutexGuard<'static, Option<Reader>> {
    BETWEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TerminalInput {
    /// Begins to read, or goes on.
    pub fn new() -> Self {
        let reader = between().take().unwrap_or_else(|| Reader {
            events: EventStream::new(),
            call: Arc::default(),
        });
        Self {
            reader: Some(reader),
        }
    }

    /// Reads no more: another program has the terminal for itself. Only while none of these lives.
    pub fn stop() {
        drop(between().take());
    }

    /// Waits for what comes next; none if the terminal is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<io::Result<Event>> {
        poll_fn(|context| {
            let Some(Reader { events, call }) = &mut self.reader else {
                return Poll::Ready(None);
            };
            // A stream that is asked while it waits spins on a lock that its own thread holds. So it
            // is not asked when something else woke this task.
            if !call.take(context.waker()) {
                return Poll::Pending;
            }
            let waker = Waker::from(Arc::clone(call));
            let next = Pin::new(events).poll_next(&mut Context::from_waker(&waker));
            if next.is_ready() {
                // More may have come with it.
                call.state().is_asleep = false;
            }
            next
        })
        .await
    }
}

impl Drop for TerminalInput {
    fn drop(&mut self) {
        *between() = self.reader.take();
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
