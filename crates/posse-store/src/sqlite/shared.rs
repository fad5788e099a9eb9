//! State that the threads of one store share with the value that callers hold.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::write_gate::WriteGate;
use crate::feed_watch::FeedWatch;
use crate::wake::Waker;

/// Connections for looking that are kept open.
const READERS: usize = 2;

#[derive(Default)]
pub(super) struct SharedState {
    /// Collects notifications for this host.
    pub(super) waker: Arc<Waker>,
    /// Waiting readers of feeds.
    pub(super) feed: Arc<FeedWatch>,
    /// Holds the writer back.
    pub(super) gate: WriteGate,
    /// Connections that nobody is looking through.
    readers: Mutex<Vec<Connection>>,
    /// In nanoseconds.
    longest_wait: AtomicU64,
}

impl SharedState {
    /// Creates it with the readers of feeds that are told here.
    pub(super) fn with_feed(feed: Arc<FeedWatch>) -> Self {
        Self {
            feed,
            ..Self::default()
        }
    }

    /// Takes a connection that nobody is looking through, if there is one.
    pub(super) fn take_reader(&self) -> Option<Connection> {
        self.readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    /// Keeps a connection for the next reader, or closes it if enough are kept.
    pub(super) fn give_reader(&self, connection: Connection) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS {
            readers.push(connection);
        }
    }

    /// Notes how long a batch has waited for its turn.
    pub(super) fn waited(&self, wait: Duration) {
        let nanoseconds = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.longest_wait.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the longest time that a batch waited for its turn.
    pub(super) fn longest_wait(&self) -> Duration {
        Duration::from_nanos(self.longest_wait.load(Ordering::Relaxed))
    }
}
