//! Holds the writer back while the process is about to be stopped, and limits how long it may
//! take to finish.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Admits batches of the writer, or holds them back.
#[derive(Default)]
pub(super) struct WriteGate {
    inside: Mutex<GateState>,
    changed: Condvar,
    /// When a caller that drops the store stops waiting for the writer.
    closes: OnceLock<Instant>,
}

#[derive(Default)]
struct GateState {
    /// A batch is being written.
    writing: bool,
    /// Number of pauses in force.
    stills: usize,
}

/// While it lives, this store writes nothing, so that a process that is stopped meanwhile blocks
/// no other. Writes wait.
pub struct WritePause<'a>(&'a WriteGate);

impl WriteGate {
    /// Waits for the batch that is being written, and lets no other begin until the guard is dropped.
    pub(super) fn still(&self) -> WritePause<'_> {
        let mut inside = self.inside();
        inside.stills += 1;
        while inside.writing {
            inside = self
                .changed
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
        }
        WritePause(self)
    }

    /// Begins a batch, which lasts until the guard is dropped.
    pub(super) fn write(&self) -> BatchGuard<'_> {
        let mut inside = self.inside();
        while inside.stills > 0 {
            inside = self
                .changed
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
        }
        inside.writing = true;
        BatchGuard(self)
    }

    /// Bounds every wait from now on: none ends later than `patience` after this call.
    pub(super) fn close(&self, patience: Duration) {
        // Only the first call counts: the store is dropped once.
        let _ = self.closes.set(Instant::now() + patience);
    }

    /// Returns how long a batch that begins now may wait for its turn.
    pub(super) fn patience(&self, patience: Duration) -> Duration {
        match self.closes.get() {
            Some(closes) => closes.saturating_duration_since(Instant::now()),
            None => patience,
        }
    }

    fn inside(&self) -> MutexGuard<'_, GateState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch that is being written.
pub(super) struct BatchGuard<'a>(&'a WriteGate);

impl Drop for BatchGuard<'_> {
    fn drop(&mut self) {
        let mut inside = self.0.inside();
        inside.writing = false;
        // Usually nobody waits, and notifying is a system call.
        if inside.stills > 0 {
            self.0.changed.notify_all();
        }
    }
}

impl Drop for WritePause<'_> {
    fn drop(&mut self) {
        self.0.inside().stills -= 1;
        self.0.changed.notify_all();
    }
}
