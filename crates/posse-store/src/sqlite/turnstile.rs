//! The turnstile: how writers of several processes take turns.
//!
//! SQLite's own lock has no queue, so that a busy process starves the others. Here a writer waits with
//! at most one other in front of it: it locks `next`, then `writer`, and leaves `next` to whoever
//! follows. The kernel frees the locks of a process that dies.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The two lock files beside a database.
pub(super) struct Turnstile {
    next: File,
    writer: File,
}

/// The right to write, until it is dropped.
pub(super) struct Pass<'a>(&'a File);

impl Turnstile {
    /// The turnstile of `database`.
    pub(super) fn open(database: &Path) -> io::Result<Self> {
        let open = |extension| {
            let path = database.with_added_extension(extension);
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
        };
        Ok(Self { next: open("next")?, writer: open("writer")? })
    }

    /// Waits for its turn.
    pub(super) fn enter(&self) -> io::Result<Pass<'_>> {
        lock(&self.next)?;
        let locked = lock(&self.writer);
        self.next.unlock()?;
        locked.map(|()| Pass(&self.writer))
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // Unlocking an open file cannot fail, and closing it would unlock it too.
        let _ = self.0.unlock();
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
