//! A cgroup for what a posse process starts, where the machine lets us have one. Who is in it
//! cannot leave unseen: not by another session, not with an emptied environment, not by losing its
//! parents.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The file by which a process enters.
pub(crate) const DOOR: &str = "cgroup.procs";
const KILL: &str = "cgroup.kill";

/// Returns where a cgroup of this name would be, beneath that of this process.
pub(crate) fn named(name: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    Some(place(&mounts, &own)?.join(name))
}

/// Makes it; whether that is of use.
pub(crate) fn make(directory: &Path) -> bool {
    if fs::create_dir(directory).is_err() {
        return false;
    }
    let of_use = directory.join(KILL).exists() && may_enter(directory);
    if !of_use {
        // An older kernel, or rights that do not reach far enough. If it stays, it is empty.
        let _ = fs::remove_dir(directory);
    }
    of_use
}

/// Returns true if processes can be put in, as far as rights say.
fn may_enter(directory: &Path) -> bool {
    fs::OpenOptions::new()
        .write(true)
        .open(directory.join(DOOR))
        .is_ok()
}

/// Returns the directory of our cgroup, version 2.
fn place(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, mounted_on) = mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, on) = (fields.next()?, fields.next()?);
        system.starts_with("cgroup2 ").then_some((root, on))
    })?;
    // Outside of what is mounted here (`/..`) there is nothing of ours; odd names are spelt with
    // `\`.
    if own.split('/').any(|part| part == "..") || mounted_on.contains('\\') {
        return None;
    }
    let beneath = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(mounted_on).join(beneath))
}

/// Kills all who are in it or beneath it, also those who are being forked.
pub(crate) fn kill(directory: &Path) -> io::Result<()> {
    fs::write(directory.join(KILL), "1")
}

/// Returns who is in it or beneath it.
pub(crate) fn members(directory: &Path) -> HashSet<i32> {
    let inside = fs::read_to_string(directory.join(DOOR)).unwrap_or_default();
    let inside = inside.lines().filter_map(|pid| pid.parse().ok());
    inside
        .chain(
            beneath(directory)
                .iter()
                .flat_map(|directory| members(directory)),
        )
        .collect()
}

/// Removes it, with those that were made beneath it; whether it is gone. Who has just ended may
/// still be in it for a moment.
pub(crate) fn remove(directory: &Path) -> bool {
    for directory in beneath(directory) {
        remove(&directory);
    }
    fs::remove_dir(directory).is_ok() || !directory.exists()
}

/// Waits until somebody has entered or left, but not for long.
pub(crate) fn wait(directory: &Path) {
    let Ok(mut events) = fs::File::open(directory.join("cgroup.events")) else {
        return;
    };
    // What was read is what a change is a change of.
    let _ = io::copy(&mut events, &mut io::sink());
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: 10_000_000,
    };
    // If it fails, it is tried again all the sooner.
    let _ = poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&wait));
}

fn beneath(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

/// Returns true if this is a cgroup that [`named`] has named, so that nobody is talked into ending
/// others.
pub(crate) fn is_named(directory: &Path, name: &str) -> bool {
    directory
        .file_name()
        .is_some_and(|it| it.as_bytes() == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_found() {
        let check = |mounts: &str, own: &str, expected: Option<&str>| {
            assert_eq!(
                place(mounts, own),
                expected.map(PathBuf::from),
                "{mounts} {own}"
            );
        };
        let plain = "23 1 0:5 / /sys rw - sysfs sysfs rw\n24 23 0:6 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        check(
            plain,
            "0::/user.slice/a b.scope\n",
            Some("/sys/fs/cgroup/user.slice/a b.scope"),
        );
        check(plain, "0::/\n", Some("/sys/fs/cgroup"));
        check(plain, "0::/../other\n", None);
        let hybrid = "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu\n41 31 0:38 / /cg/unified rw shared:1 - cgroup2 none rw";
        check(hybrid, "4:memory:/x\n0::/y\n", Some("/cg/unified/y"));
        check(
            "41 31 0:38 /docker/7 /cg rw - cgroup2 none rw",
            "0::/docker/7/z",
            Some("/cg/z"),
        );
        check(
            "41 31 0:38 /docker/7 /cg rw - cgroup2 none rw",
            "0::/elsewhere",
            None,
        );
        check(
            "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu",
            "1:cpu:/\n",
            None,
        );
        check("41 31 0:38 / /a\\040b rw - cgroup2 none rw", "0::/", None);
    }
}
