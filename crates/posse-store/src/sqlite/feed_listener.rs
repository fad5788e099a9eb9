//! The listener for feeds that other processes write: one thread, started by the first reader that
//! waits.
//!
//! Like a host's bell it arms its watch, queries, and only then sleeps. While nobody waits it
//! sleeps without end.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;

use super::feed;
use super::host::NO_LINK;
use super::place::DatabasePlace;
use super::timing::Timing;
use crate::feed_watch::FeedWatch;

/// However often others commit, readers cost no more than this number of rounds in this time.
const ROUNDS: u32 = 16;
const SPAN: Duration = Duration::from_millis(16);

/// The thread's handle. The thread ends when this is dropped.
pub(super) struct FeedListener {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is told.
struct Signal {
    /// Readable when a reader has begun to wait, or the thread must stop.
    event: OwnedFd,
    stopped: AtomicBool,
}

/// The state of the thread.
struct Listening {
    feeds: Arc<FeedWatch>,
    connection: Connection,
    timing: Timing,
    path: PathBuf,
    /// `None` if the system has no watches left: then only the sweep finds changes.
    rings: Option<OwnedFd>,
    signal: Arc<Signal>,
}

impl FeedListener {
    /// Starts listening. Returns `None` for a store in memory, whose readers are told directly.
    pub(super) fn start(place: &DatabasePlace, feeds: &Arc<FeedWatch>) -> io::Result<Option<Self>> {
        let Some(path) = place.hosts().readers_bell() else {
            return Ok(None);
        };
        let signal = Arc::new(Signal {
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stopped: AtomicBool::new(false),
        });
        let listening = Listening {
            feeds: Arc::clone(feeds),
            connection: place.connect().map_err(io::Error::other)?,
            timing: place.timing,
            path,
            rings: inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
                .ok(),
            signal: Arc::clone(&signal),
        };
        let thread = thread::Builder::new()
            .name("posse-feed".into())
            .spawn(move || listening.run())?;
        Ok(Some(Self {
            signal,
            thread: Some(thread),
        }))
    }

    /// Tells the thread that a reader waits.
    pub(super) fn notice(&self) {
        // Cannot block: the counter is far from its end.
        let _ = rustix::io::write(&self.signal.event, &1_u64.to_ne_bytes());
    }
}

impl Drop for FeedListener {
    fn drop(&mut self) {
        self.signal.stopped.store(true, Ordering::SeqCst);
        self.notice();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Listening {
    fn run(self) {
        let (mut begun, mut rounds) = (Instant::now(), 0);
        while !self.signal.stopped.load(Ordering::SeqCst) {
            let passed = begun.elapsed();
            if passed >= SPAN {
                (begun, rounds) = (Instant::now(), 0);
            } else if rounds == ROUNDS {
                // Readers that begin to wait meanwhile must not end it: they come by the same commits.
                let _ = poll(&mut [], Some(&timespec(SPAN - passed)));
                continue;
            }
            rounds += 1;
            self.arm();
            let wanted = self.feeds.wanted();
            for (realm, after) in &wanted {
                // An error of the engine is not fatal: the next sweep queries again.
                if let Ok(tail) = feed::tail(&self.connection, *realm, *after) {
                    self.feeds.publish_tail(*realm, tail);
                }
            }
            if wanted.is_empty() {
                self.sleep(None, None);
            } else {
                self.sleep(self.rings.as_ref(), Some(self.timing.sweep));
            }
        }
    }

    /// Discards old signals and watches for new ones.
    fn arm(&self) {
        let mut events = [0; 4096];
        while rustix::io::read(&self.signal.event, &mut events[..8]).is_ok() {}
        let Some(rings) = &self.rings else { return };
        while rustix::io::read(rings, &mut events).is_ok_and(|length| length > 0) {}
        if self.timing.deaf {
            return;
        }
        let flags = inotify::WatchFlags::MODIFY | inotify::WatchFlags::ATTRIB;
        let watch = || inotify::add_watch(rings, &self.path, flags);
        if watch().is_err() && make_bell(&self.path).is_ok() {
            let _ = watch();
        }
    }

    /// Sleeps until it is told something or `also` has something, at most for `most`.
    fn sleep(&self, also: Option<&OwnedFd>, most: Option<Duration>) {
        let most = most.map(timespec);
        let mut fds: Vec<_> = [Some(&self.signal.event), also]
            .into_iter()
            .flatten()
            .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN))
            .collect();
        // An interruption by a signal is harmless: it only queries once too often.
        let _ = poll(&mut fds, most.as_ref());
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// Creates the bell that writers ring, and its directory.
fn make_bell(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NO_LINK)
        .open(path)
        .map(drop)
}
