//! The turnstile: how writers of several processes take turns.
//!
//! SQLite's own lock has no queue, so that a busy process starves the others. Here a writer waits its
//! turn: it locks `next`, then `writer`, and leaves `next` to whoever
//! follows. The kernel frees the locks of a process that dies; one that is stopped keeps them, and so
//! nobody waits for ever: a thread of its own, the doorman, stands in the queue.

mod holder;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The two lock files beside a database.
pub(super) struct Turnstile(Arc<Door>);

struct Door {
    next: File,
    writer: File,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// What the doorman and the one it stands in for know of each other.
#[derive(Default)]
struct Queue {
    /// There is a doorman.
    staffed: bool,
    /// The doorman is in the queue, or about to be.
    queued: bool,
    /// Somebody waits for the turn.
    wanted: bool,
    /// What came of queueing, for the one who waits.
    turn: Option<io::Result<()>>,
    /// Nobody will come any more.
    closed: bool,
}

/// The right to write, until it is dropped.
pub(super) struct Pass<'a>(&'a File);

impl Turnstile {
    /// The turnstile of `database`.
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
        Ok(Self(Arc::new(Door {
            next,
            writer,
            queue: Mutex::default(),
            changed: Condvar::new(),
        })))
    }

    /// Waits for its turn, at most so long. Who could not wait keeps its place in the queue for the
    /// next call.
    pub(super) fn enter(&self, patience: Duration) -> io::Result<Pass<'_>> {
        let door = &self.0;
        let mut queue = door.queue();
        // While the doorman is out there, its handles are ours: to try them would be to meddle.
        if !queue.queued {
            if door.is_free()? {
                return Ok(Pass(&door.writer));
            }
            if !queue.staffed {
                let (name, minded) = ("posse-doorman".into(), Arc::clone(door));
                let started = thread::Builder::new()
                    .name(name)
                    .spawn(move || minded.mind());
                started.inspect_err(|_| drop(door.next.unlock()))?;
                queue.staffed = true;
            }
            queue.queued = true;
            door.changed.notify_all();
        }
        queue.wanted = true;
        let waits = |queue: &mut Queue| queue.turn.is_none();
        let waited = door.changed.wait_timeout_while(queue, patience, waits);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.wanted = false;
        let turn = queue.turn.take();
        // Who is to blame is looked up without holding up the doorman.
        drop(queue);
        match turn {
            Some(turn) => turn.map(|()| Pass(&door.writer)),
            None => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                holder::blame(&door.next, &door.writer),
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

impl Door {
    /// Takes the turn if nobody has it and nobody waits for it. If only the turn is taken, `next` is
    /// ours afterwards: the place right behind.
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

    /// Stands in the queue whenever somebody wants it.
    fn mind(&self) {
        let mut queue = self.queue();
        loop {
            let idle = |queue: &mut Queue| !queue.queued && !queue.closed;
            queue = self
                .changed
                .wait_while(queue, idle)
                .unwrap_or_else(PoisonError::into_inner);
            if !queue.queued {
                return;
            }
            drop(queue);
            let turn = self.stand();
            queue = self.queue();
            queue.queued = false;
            if queue.wanted {
                queue.turn = Some(turn);
                self.changed.notify_all();
            } else if turn.is_ok() {
                // Whoever wanted it has gone, and others wait.
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

    fn queue(&self) -> MutexGuard<'_, Queue> {
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
