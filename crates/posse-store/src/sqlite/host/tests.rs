//! Lives and deaths of hosts, as their files show them.

use std::fs::FileTimes;
use std::time::SystemTime;

use tempfile::TempDir;

use super::*;

/// A directory that goes with its test.
struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn hosts(&self, lease: Duration) -> Hosts {
        Hosts::Files {
            directory: self.0.path().into(),
            lease,
        }
    }

    fn path(&self, name: String) -> PathBuf {
        self.0.path().join(name)
    }

    fn count(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

#[test]
fn a_host_is_alive_until_it_stalls_and_dead_when_it_is_dropped() {
    let directory = Directory::new();
    let (hosts, strict) = (
        directory.hosts(Duration::from_secs(60)),
        directory.hosts(Duration::from_secs(1)),
    );
    let host = hosts.settle(&Arc::default()).unwrap();
    let pid = std::process::id();
    assert_eq!(hosts.look(host.id).unwrap(), HostLiveness::Alive { pid });
    let path = directory.path(host.id.to_string());
    let old = format!("{pid}\n{:020}\n", now_ms() - 2000);
    fs::write(&path, old).unwrap();
    assert_eq!(hosts.look(host.id).unwrap(), HostLiveness::Alive { pid });
    assert_eq!(strict.look(host.id).unwrap(), HostLiveness::Stalled { pid });
    assert_eq!(strict.alive(host.id).unwrap(), Some(format!("pid {pid}")));
    host.heart().unwrap().unwrap().beat();
    assert_eq!(strict.look(host.id).unwrap(), HostLiveness::Alive { pid });
    let id = host.id;
    drop(host);
    assert_eq!(
        (hosts.look(id).unwrap(), directory.count()),
        (HostLiveness::Dead, 0)
    );
}

#[test]
fn leftovers_are_swept_and_what_is_being_made_is_not() {
    let directory = Directory::new();
    let hosts = directory.hosts(Duration::from_secs(60));
    let leave = |name: String, old: bool| {
        let file = File::create(directory.path(name)).unwrap();
        let at = SystemTime::now() - if old { 2 * MAKING } else { Duration::ZERO };
        file.set_times(FileTimes::new().set_modified(at)).unwrap();
        file
    };
    let locked = leave(format!("{}.new", Uuid::now_v7()), true);
    locked.lock().unwrap();
    let kept = ["new", "bell"].map(|kind| leave(format!("{}.{kind}", Uuid::now_v7()), false));
    for kind in [".new", ".bell", ""] {
        leave(format!("{}{kind}", Uuid::now_v7()), true);
    }
    leave("strange".into(), true);
    let host = hosts.settle(&Arc::default()).unwrap();
    // Its own two, the locked one, the two new ones and the strange one.
    assert_eq!(directory.count(), 6);
    drop((host, locked, kept));
    assert_eq!(directory.count(), 4);
}
