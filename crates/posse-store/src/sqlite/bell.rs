//! The listener of a host: one thread that sleeps until its bell is rung, another host dies, or a
//! heartbeat is due.
//!
//! It arms its watch, queries, and only then sleeps, so that a ring between querying and sleeping
//! is heard. A ring carries no data: everything there is to know is found by querying. A lost
//! ring costs time until the next sweep, and nothing else.

mod look;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::batch::Start;
use super::host::{Heart, Hosts, NO_LINK, SqliteHost};
use super::job::SqliteJob;
use super::place::DatabasePlace;
use super::shared::SharedState;
use super::timing::Timing;

/// The thread's handle. The thread ends when this is dropped.
pub(super) struct Bell {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the thread.
struct BellListener {
    me: Uuid,
    hosts: Hosts,
    timing: Timing,
    heart: Heart,
    path: PathBuf,
    connection: Connection,
    /// `None` if the system has no watches left: then only the sweep finds changes.
    rings: Option<OwnedFd>,
    stop: Arc<OwnedFd>,
    shared: Arc<SharedState>,
    /// Weak, because the writer ends when the last strong sender is gone.
    jobs: mpsc::WeakSender<SqliteJob>,
    /// The last change of a task list that was seen.
    cursor: i64,
    /// The other hosts, as of the last query.
    others: BTreeSet<Uuid>,
    /// Process handles of hosts, which become readable when the process ends.
    watched: BTreeMap<Uuid, OwnedFd>,
}

/// Why the thread woke.
enum Woken {
    Rung,
    Stopped,
}

impl Bell {
    /// Starts listening. Returns `None` for a store in memory, where hosts are told directly.
    pub(super) fn start(
        place: &DatabasePlace,
        host: &SqliteHost,
        shared: &Arc<SharedState>,
        jobs: &mpsc::WeakSender<SqliteJob>,
        Start { cursor, others }: Start,
    ) -> io::Result<Option<Self>> {
        let hosts = place.hosts();
        let (Some(heart), Some(path)) = (host.heart()?, hosts.bell(host.id)) else {
            return Ok(None);
        };
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let listener = BellListener {
            me: host.id,
            hosts,
            timing: place.timing,
            heart,
            path,
            connection: place.connect().map_err(io::Error::other)?,
            rings: inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
                .ok(),
            stop: Arc::clone(&stop),
            shared: Arc::clone(shared),
            jobs: jobs.clone(),
            cursor,
            others,
            watched: BTreeMap::new(),
        };
        let thread = thread::Builder::new()
            .name("posse-bell".into())
            .spawn(move || listener.listen())?;
        Ok(Some(Self {
            stop,
            thread: Some(thread),
        }))
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // Cannot block or overflow: the counter is raised only once.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl BellListener {
    /// Listens until stopped, or until this host is lost.
    fn listen(mut self) {
        // The writer has written a heartbeat just before this began.
        let mut due = Instant::now() + self.timing.sweep;
        let mut sweep = true;
        loop {
            self.arm();
            // An error of the engine is not fatal: the next sweep queries again.
            let settled = self.look(sweep).unwrap_or(true);
            if !settled {
                return;
            }
            if let Woken::Stopped = self.sleep(due.saturating_duration_since(Instant::now())) {
                return;
            }
            sweep = Instant::now() >= due;
            if sweep {
                self.heart.beat();
                due = Instant::now() + self.timing.sweep;
            }
        }
    }

    /// Discards old rings and watches for new ones. An existing watch stays; one that vanished
    /// with its file is created again.
    fn arm(&self) {
        let Some(rings) = &self.rings else { return };
        let mut events = [0; 4096];
        while rustix::io::read(rings, &mut events).is_ok_and(|length| length > 0) {}
        if self.timing.deaf {
            return;
        }
        // ATTRIB reports unlinking at once; a deletion event would come only when the last handle
        // is closed.
        let flags = inotify::WatchFlags::MODIFY | inotify::WatchFlags::ATTRIB;
        let watch = || inotify::add_watch(rings, &self.path, flags);
        if watch().is_err() {
            let mut make = OpenOptions::new();
            let made = make.write(true).create(true).truncate(false).mode(0o600);
            let made = made.custom_flags(NO_LINK).open(&self.path);
            let _ = made.and_then(|_| Ok(watch()?));
        }
    }

    /// Sleeps until something happens, at most for `most`.
    fn sleep(&mut self, most: Duration) -> Woken {
        let most = Timespec {
            tv_sec: most.as_secs().cast_signed(),
            tv_nsec: most.subsec_nanos().into(),
        };
        let fds = [
            Some(self.stop.as_fd()),
            self.rings.as_ref().map(AsFd::as_fd),
        ];
        let before = fds.iter().flatten().count();
        let fds = fds
            .into_iter()
            .flatten()
            .chain(self.watched.values().map(AsFd::as_fd));
        let mut fds: Vec<_> = fds
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        // An interruption by a signal is harmless: it only queries once too often.
        let _ = poll(&mut fds, Some(&most));
        let happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if happened.first() == Some(&true) {
            return Woken::Stopped;
        }
        // A host that died is no longer watched, and is examined like a new one.
        let mut died = happened.into_iter().skip(before);
        self.watched.retain(|_, _| died.next() != Some(true));
        Woken::Rung
    }
}
