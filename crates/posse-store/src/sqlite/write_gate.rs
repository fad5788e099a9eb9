//! What keeps the writer from starting a batch, and what bounds its end.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The writer's gate.
#[derive(Default)]
pub(super) struct Gate {
    inside: Mutex<Inside>,
    changed: Condvar,
    /// When whoever drops the store stops waiting for it.
    closes: OnceLock<Instant>,
}

#[derive(Default)]
struct Inside {
    writing: bool,
    stills: usize,
}

/// While it lives, nothing is written by this store: a process may stop without others having to wait
/// for it. What is to be written waits.
pub struct Still<'a>(&'a Gate);

impl Gate {
    /// Finishes the batch that is being written, and lets no other begin.
    pub(super) fn still(&self) -> Still<'_> {
        let mut inside = self.inside();
        inside.stills += 1;
        while inside.writing {
            inside = self
                .changed
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Still(self)
    }

    /// Begins a batch, which lasts until what is given is dropped.
    pub(super) fn write(&self) -> Writing<'_> {
        let mut inside = self.inside();
        while inside.stills > 0 {
            inside = self
                .changed
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
        }
        inside.writing = true;
        Writing(self)
    }

    /// Nobody waits longer than `patience` from now on.
    pub(super) fn close(&self, patience: Duration) {
        // It is closed once.
        let _ = self.closes.set(Instant::now() + patience);
    }

    /// How long a batch that begins now may wait for its turn.
    pub(super) fn patience(&self, patience: Duration) -> Duration {
        match self.closes.get() {
            Some(closes) => closes.saturating_duration_since(Instant::now()),
            None => patience,
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch that is being written.
pub(super) struct Writing<'a>(&'a Gate);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut inside = self.0.inside();
        inside.writing = false;
        // Nearly always nobody waits, and to notify is a system call.
        if inside.stills > 0 {
            self.0.changed.notify_all();
        }
    }
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.0.inside().stills -= 1;
        self.0.changed.notify_all();
    }
}
