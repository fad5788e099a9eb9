//! The turnstile: how writers of several processes take turns.
//!
//! SQLite's own lock has no queue, so that a busy process starves the others. Here a writer waits
//! its turn: it locks `next`, then `writer`, and leaves `next` to the process that follows. The
//! kernel frees the locks of a process that dies. One that is stopped keeps them, so no writer may
//! wait without a limit: a thread of its own, the doorman, stands in the queue.

mod holder;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The two lock files beside a database.
pub(super) struct Turnstile(Arc<TurnstileLocks>);

struct TurnstileLocks {
    next: File,
    writer: File,
    queue: Mutex<DoormanQueue>,
    changed: Condvar,
}

/// What the doorman and the writer that it stands in for know of each other.
#[derive(Default)]
struct DoormanQueue {
    doorman: Doorman,
    /// A writer waits for the turn.
    wanted: bool,
    /// The result of queueing, for the writer that waits.
    turn: Option<io::Result<()>>,
    /// No writer will come any more.
    closed: bool,
}

/// Where the doorman is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Doorman {
    /// Its thread was not needed yet.
    #[default]
    Absent,
    /// It waits until it is wanted.
    Idle,
    /// It is in the queue, or about to be.
    Queued,
}

/// The right to write, until it is dropped.
pub(super) struct Pass<'a>(&'a File);

impl Turnstile {
    /// Returns the turnstile of `database`.
    pub(super) fn open(database: &Path) -> io::Result<Self> {
        let open = |extension| {
            let path = database.with_added_extension(extension);
            OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(path)
        };
        let (next, writer) = (open("next")?, open("writer")?);
        Ok(Self(Arc::new(TurnstileLocks {
            next,
            writer,
            queue: Mutex::default(),
            changed: Condvar::new(),
        })))
    }

    /// Waits for its turn, at most for `patience`. A call that times out keeps its place in the
    /// queue for the next one.
    pub(super) fn enter(&self, patience: Duration) -> io::Result<Pass<'_>> {
        let locks = &self.0;
        let mut queue = locks.queue();
        // While the doorman is in the queue it uses the same file handles, and a lock belongs to
        // the handle: trying them here would succeed or release its place.
        if queue.doorman != Doorman::Queued {
            if locks.is_free()? {
                return Ok(Pass(&locks.writer));
            }
            if queue.doorman == Doorman::Absent {
                let (name, minded) = ("posse-doorman".into(), Arc::clone(locks));
                let started = thread::Builder::new()
                    .name(name)
                    .spawn(move || minded.mind());
                started.inspect_err(|_| drop(locks.next.unlock()))?;
            }
            queue.doorman = Doorman::Queued;
            locks.changed.notify_all();
        }
        queue.wanted = true;
        let waits = |queue: &mut DoormanQueue| queue.turn.is_none();
        let waited = locks.changed.wait_timeout_while(queue, patience, waits);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.wanted = false;
        let turn = queue.turn.take();
        // Unlocked first: looking up the holder must not hold up the doorman.
        drop(queue);
        match turn {
            Some(turn) => turn.map(|()| Pass(&locks.writer)),
            None => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                holder::blame(&locks.next, &locks.writer),
            )),
        }
    }
}

impl Drop for Turnstile {
    /// A doorman in the queue cannot be called back: it ends when its turn has come.
    fn drop(&mut self) {
        self.0.queue().closed = true;
        self.0.changed.notify_all();
    }
}

impl TurnstileLocks {
    /// Takes the turn if it is free and no process waits for it; returns false if not. If only the
    /// turn is taken, `next` is ours afterwards: the place right behind.
    fn is_free(&self) -> io::Result<bool> {
        if !try_lock(&self.next)? {
            return Ok(false);
        }
        let turn = try_lock(&self.writer);
        if !matches!(turn, Ok(false)) {
            self.next.unlock()?;
        }
        turn
    }

    /// Stands in the queue whenever a writer wants a turn.
    fn mind(&self) {
        let mut queue = self.queue();
        loop {
            let idle = |queue: &mut DoormanQueue| queue.doorman == Doorman::Idle && !queue.closed;
            queue = self
                .changed
                .wait_while(queue, idle)
                .unwrap_or_else(PoisonError::into_inner);
            if queue.doorman == Doorman::Idle {
                return;
            }
            drop(queue);
            let turn = self.stand();
            queue = self.queue();
            queue.doorman = Doorman::Idle;
            if queue.wanted {
                queue.turn = Some(turn);
                self.changed.notify_all();
            } else if turn.is_ok() {
                // The writer that wanted the turn has timed out, and other processes wait.
                let _ = self.writer.unlock();
            }
        }
    }

    fn stand(&self) -> io::Result<()> {
        lock(&self.next)?;
        let locked = lock(&self.writer);
        self.next.unlock()?;
        locked
    }

    fn queue(&self) -> MutexGuard<'_, DoormanQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // Unlocking an open file cannot fail, and closing it would unlock it too.
        let _ = self.0.unlock();
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_turn_that_nobody_wants_any_more_is_given_back() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("posse.db");
        let [first, second, third] = [0; 3].map(|_| Turnstile::open(&database).unwrap());
        let pass = first.enter(LONG).unwrap();
        for waiting in [&second, &third, &second] {
            let late = waiting.enter(Duration::from_millis(5)).err().unwrap();
            assert_eq!(late.kind(), io::ErrorKind::TimedOut);
            assert!(
                late.to_string()
                    .contains(&format!("process {} ", std::process::id())),
                "{late}"
            );
        }
        // Its doorman is still in the queue.
        drop(third);
        drop(pass);
        for turnstile in [&first, &second, &first, &second] {
            drop(turnstile.enter(LONG).unwrap());
        }
    }
}
