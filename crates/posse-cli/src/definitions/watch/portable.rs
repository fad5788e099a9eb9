//! Changes in directories, where the kernel is not Linux.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{Change, Waited};

/// Number of events that may wait.
const WAITING: usize = 64;

/// Changes in the directories that are watched.
pub(super) struct NotifyChanges {
    // Dropped first: the watcher's thread may wait for room.
    events: Receiver<Option<Vec<Change>>>,
    watcher: RecommendedWatcher,
}

/// Ends the wait for changes when it is dropped.
pub(super) struct NotifyStopper {
    tell: SyncSender<Option<Vec<Change>>>,
}

impl NotifyChanges {
    /// Watches nothing yet.
    pub(super) fn new() -> io::Result<(Self, NotifyStopper)> {
        let (tell, events) = sync_channel(WAITING);
        let hear = tell.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let changes = match event {
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
                Ok(event) if !event.need_rescan() => {
                    event.paths.into_iter().map(Change::At).collect()
                }
                _ => vec![Change::Unknown],
            };
            // Nobody may be waiting any more.
            let _ = hear.send(Some(changes));
        });
        let watcher = watcher.map_err(io::Error::other)?;
        Ok((Self { events, watcher }, NotifyStopper { tell }))
    }

    /// Watches a directory from now on. It may be watched already, or another one by this name.
    pub(super) fn watch(&mut self, path: &Path) -> io::Result<()> {
        let outcome = self.watcher.watch(path, RecursiveMode::NonRecursive);
        outcome.map_err(|error| match error.kind {
            notify::ErrorKind::PathNotFound => io::ErrorKind::NotFound.into(),
            _ => io::Error::other(error),
        })
    }

    /// Watches a directory no longer.
    pub(super) fn unwatch(&mut self, path: &Path) {
        // The directory may be gone from the disk.
        let _ = self.watcher.unwatch(path);
    }

    /// Waits for changes, at most so long.
    pub(super) fn wait(&mut self, most: Option<Duration>) -> Waited {
        let event = match most {
            None => self
                .events
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(most) => self.events.recv_timeout(most),
        };
        match event {
            Ok(Some(changes)) => Waited::Changed(changes),
            Err(RecvTimeoutError::Timeout) => Waited::Quiet,
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Waited::Stopped,
        }
    }
}

impl Drop for NotifyStopper {
    fn drop(&mut self) {
        // Nobody may be waiting any more.
        let _ = self.tell.send(None);
    }
}
