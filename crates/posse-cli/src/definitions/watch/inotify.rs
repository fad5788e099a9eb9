//! Changes in directories, from the kernel. Files that are only opened or read wake nobody: every
//! program that starts opens some below /etc.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::{Change, Waited};

/// What is a change. A file counts when it is closed by its writer, not at each write: then it is
/// whole, and databases and logs that stay open wake nobody.
const CHANGES: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// Bytes of events that are read at once.
const BUFFER: usize = 4096;

/// Changes in the directories that are watched.
pub(super) struct Changes {
    queue: OwnedFd,
    watched: BTreeMap<i32, PathBuf>,
    /// Ends when nobody waits for changes any more.
    stopped: PipeReader,
}

/// Ends the wait for changes when it is dropped.
pub(super) struct Stopper {
    _end: PipeWriter,
}

impl Changes {
    /// Watches nothing yet.
    pub(super) fn new() -> io::Result<(Self, Stopper)> {
        let (stopped, end) = io::pipe()?;
        let changes = Self {
            queue: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            watched: BTreeMap::new(),
            stopped,
        };
        Ok((changes, Stopper { _end: end }))
    }

    /// Watches a directory from now on. It may be watched already, or another one by this name.
    pub(super) fn watch(&mut self, path: &Path) -> io::Result<()> {
        let watch = inotify::add_watch(&self.queue, path, CHANGES)?;
        self.watched
            .retain(|known, at| at != path || *known == watch);
        self.watched.insert(watch, path.to_owned());
        Ok(())
    }

    /// Watches a directory no longer.
    pub(super) fn unwatch(&mut self, path: &Path) {
        let gone = self.watched.extract_if(.., |_, at| at == path);
        for (watch, _) in gone {
            // The directory may be gone from the disk.
            let _ = inotify::remove_watch(&self.queue, watch);
        }
    }

    /// Waits for changes, at most so long.
    pub(super) fn wait(&mut self, most: Option<Duration>) -> Waited {
        let most = most.map(|most| Timespec {
            tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: most.subsec_nanos().into(),
        });
        let mut ready = [
            PollFd::new(&self.queue, PollFlags::IN),
            PollFd::new(&self.stopped, PollFlags::IN),
        ];
        match poll(&mut ready, most.as_ref()) {
            Err(Errno::INTR) => Waited::Changed(Vec::new()),
            Err(_) => Waited::Stopped,
            Ok(_) if !ready[1].revents().is_empty() => Waited::Stopped,
            Ok(0) => Waited::Quiet,
            Ok(_) => Waited::Changed(self.read()),
        }
    }

    /// Reads what the kernel has to tell now.
    fn read(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&self.queue, &mut buffer);
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                changes.push(Change::Unknown);
            }
            let Some(directory) = self.watched.get(&event.wd()) else {
                continue;
            };
            changes.push(Change::At(match event.file_name() {
                Some(name) => directory.join(OsStr::from_bytes(name.to_bytes())),
                None => directory.clone(),
            }));
            if event.events().contains(ReadFlags::IGNORED) {
                self.watched.remove(&event.wd());
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::settings::tests::Disk;

    /// Returns what has changed up to now. The kernel queues an event before the call that causes
    /// it returns.
    fn changed(changes: &mut Changes) -> Vec<PathBuf> {
        match changes.wait(Some(Duration::ZERO)) {
            Waited::Changed(all) => (all.into_iter())
                .map(|change| match change {
                    Change::At(path) => path,
                    Change::Unknown => "unknown".into(),
                })
                .collect(),
            Waited::Quiet => Vec::new(),
            Waited::Stopped => panic!("stopped"),
        }
    }

    #[test]
    fn who_only_reads_wakes_nobody() {
        let disk = Disk::new();
        let (home, file) = (disk.path("home"), disk.path("home/a.md"));
        fs::write(&file, "one").unwrap();
        let (mut changes, stopper) = Changes::new().unwrap();
        changes.watch(&home).unwrap();
        for _ in 0..100 {
            assert_eq!(fs::read(&file).unwrap(), b"one");
            assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
        }
        assert!(matches!(changes.wait(Some(Duration::ZERO)), Waited::Quiet));
        fs::write(&file, "two").unwrap();
        assert_eq!(changed(&mut changes), [file.as_path()]);
        let moved = home.join("b.md");
        fs::rename(&file, &moved).unwrap();
        assert_eq!(changed(&mut changes), [file.as_path(), &moved]);
        fs::remove_file(&moved).unwrap();
        assert_eq!(changed(&mut changes), [moved.as_path()]);
        changes.unwatch(&home);
        fs::write(&file, "three").unwrap();
        assert!(changed(&mut changes).is_empty());
        drop(stopper);
        assert!(matches!(changes.wait(None), Waited::Stopped));
    }

    #[test]
    fn another_directory_of_the_same_name_is_watched_instead() {
        let disk = Disk::new();
        let (here, gone) = (disk.path("here"), disk.path("gone"));
        let (mut changes, _stopper) = Changes::new().unwrap();
        fs::create_dir(&here).unwrap();
        changes.watch(&here).unwrap();
        fs::rename(&here, &gone).unwrap();
        assert_eq!(changed(&mut changes), [here.as_path()]);
        fs::create_dir(&here).unwrap();
        changes.watch(&here).unwrap();
        fs::write(gone.join("x"), "x").unwrap();
        assert!(changed(&mut changes).is_empty());
        fs::write(here.join("x"), "x").unwrap();
        assert!(changed(&mut changes).contains(&here.join("x")));
        fs::remove_dir_all(&here).unwrap();
        assert!(changed(&mut changes).contains(&here));
        let missing = changes.watch(&here).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
