//! A cgroup for the processes that posse starts, if the machine allows one. A process cannot
//! leave it unnoticed: not by a new session, an emptied environment, or the loss of its parents.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use uuid::Uuid;

/// The file through which a process enters.
pub(crate) const DOOR: &str = "cgroup.procs";
/// The file that kills all processes inside. Linux 5.14 and later have it.
const KILL: &str = "cgroup.kill";

/// What the name of a cgroup of commands begins with; an id follows.
const PREFIX: &str = "posse-";

/// Returns the name of the cgroup of the commands of one posse process.
pub(crate) fn name(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// Returns the name of the cgroup of commands that a process is in.
pub(crate) fn of_commands(pid: i32) -> Option<String> {
    let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    commands_in(&cgroups).map(str::to_owned)
}

fn commands_in(cgroups: &str) -> Option<&str> {
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let is_one = |name: &&str| {
        let id = name.strip_prefix(PREFIX);
        id.is_some_and(|id| Uuid::try_parse(id).is_ok())
    };
    own.split('/').find(is_one)
}

/// Returns the path of a cgroup of this name, below that of this process.
pub(crate) fn named(name: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    Some(place(&mounts, &own)?.join(name))
}

/// Creates it. Returns false if it cannot be created or used.
pub(crate) fn make(directory: &Path) -> bool {
    if fs::create_dir(directory).is_err() {
        return false;
    }
    let of_use = directory.join(KILL).exists() && may_enter(directory);
    if !of_use {
        // An older kernel, or missing permissions. If it cannot be removed, it is at least empty.
        let _ = fs::remove_dir(directory);
    }
    of_use
}

/// Returns true if permissions allow to add processes.
fn may_enter(directory: &Path) -> bool {
    fs::OpenOptions::new()
        .write(true)
        .open(directory.join(DOOR))
        .is_ok()
}

/// Returns the directory of this process's cgroup, version 2.
fn place(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, mounted_on) = mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, on) = (fields.next()?, fields.next()?);
        system.starts_with("cgroup2 ").then_some((root, on))
    })?;
    // A path outside of the mount (`/..`) is not accessible here; special characters are escaped
    // with
    // `\`, which is not worth decoding.
    if own.split('/').any(|part| part == "..") || mounted_on.contains('\\') {
        return None;
    }
    let beneath = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(mounted_on).join(beneath))
}

/// Where cgroups of the first version count processes.
const COUNTED: &str = "/sys/fs/cgroup/pids";
/// The file that says how many processes there may be inside.
const MOST: &str = "pids.max";

/// Limits how many processes the commands of one posse process have at once, and returns the file
/// through which a process enters, if that is another than that of `directory`, their cgroup. Does
/// nothing if the machine does not let it.
pub(crate) fn limit(directory: Option<&Path>, name: &str, processes: u64) -> Option<PathBuf> {
    let most = processes.to_string();
    if directory.is_some_and(|directory| fs::write(directory.join(MOST), &most).is_ok()) {
        return None;
    }
    let counted = Path::new(COUNTED).join(name);
    // It is there already for a later command.
    let _ = fs::create_dir(&counted);
    fs::write(counted.join(MOST), &most).ok()?;
    Some(counted.join(DOOR))
}

/// Removes what [`limit`] has made.
pub(crate) fn remove_limit(name: &str) -> bool {
    remove(&Path::new(COUNTED).join(name))
}

/// Kills all processes inside and below, including those that are being forked.
pub(crate) fn kill(directory: &Path) -> io::Result<()> {
    fs::write(directory.join(KILL), "1")
}

/// Returns the processes inside and below.
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

/// Removes it and those below. Returns false if it still exists: a process that has just ended
/// may stay in it for a moment.
pub(crate) fn remove(directory: &Path) -> bool {
    for directory in beneath(directory) {
        remove(&directory);
    }
    fs::remove_dir(directory).is_ok() || !directory.exists()
}

/// Waits a short time for a process to enter or leave.
pub(crate) fn wait(directory: &Path) {
    let Ok(mut events) = fs::File::open(directory.join("cgroup.events")) else {
        return;
    };
    // The file must be read first: a poll reports only changes after the last read.
    let _ = io::copy(&mut events, &mut io::sink());
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: 10_000_000,
    };
    // If it fails, the caller just tries again sooner.
    let _ = poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&wait));
}

fn beneath(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

/// Returns true if [`named`] has created this path, so that nobody can be tricked into ending
/// other processes.
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

    #[test]
    fn a_cgroup_of_commands_is_known_by_its_name() {
        let id = "0197f000-0000-7000-8000-000000000001";
        let check = |own: &str, expected: Option<&str>| {
            assert_eq!(commands_in(own), expected, "{own}");
        };
        let name = name(id);
        check(
            &format!("4:memory:/x\n0::/user.slice/{name}\n"),
            Some(&name),
        );
        check(&format!("0::/{name}/below\n"), Some(&name));
        check(&format!("0::/../{name}\n"), Some(&name));
        check(&format!("4:memory:/{name}\n0::/\n"), None);
        check("0::/posse-worker.service\n", None);
        check(&format!("0::/x{name}\n"), None);
    }
}
