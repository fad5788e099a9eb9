//! Tries, in a process that is confined, what must fail there.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::ExitCode;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, SocketType, socket};

use crate::error::{LaunchError, Step as _};

/// Tries, behind all lines of defence, what must fail there.
pub(crate) fn check_inside() -> Result<ExitCode, LaunchError> {
    let read_only = statvfs("/").map(|it| it.f_flag.contains(StatVfsMountFlags::RDONLY));
    expect(read_only == Ok(true), "/ is writable")?;
    let settings = statvfs("/proc/sys").map(|it| it.f_flag.contains(StatVfsMountFlags::RDONLY));
    expect(settings == Ok(true), "/proc/sys is writable")?;
    let bounds = status()?;
    expect(
        is_empty(field(&bounds, "CapBnd")),
        "a capability can be had",
    )?;
    check_fence()
}

fn status() -> Result<String, LaunchError> {
    fs::read_to_string("/proc/self/status").step("look at rights")
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_default().trim()
}

fn is_empty(set: &str) -> bool {
    !set.is_empty() && set.bytes().all(|digit| digit == b'0')
}

/// Tries what must fail in every tier.
pub(crate) fn check_fence() -> Result<ExitCode, LaunchError> {
    let status = status()?;
    let field = |name| field(&status, name);
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        expect(is_empty(field(set)), "a capability is left")?;
    }
    expect(field("NoNewPrivs") == "1", "new rights are possible")?;
    expect(field("Seccomp") == "2", "system calls are not filtered")?;
    let mounted = mount("none", "/", "tmpfs", MountFlags::empty(), c"");
    expect(mounted == Err(Errno::PERM), "mounts are possible")?;
    let user = unshare(CloneFlags::CLONE_NEWUSER);
    expect(
        user == Err(nix::errno::Errno::EPERM),
        "namespaces are possible",
    )?;
    let packets = socket(AddressFamily::PACKET, SocketType::RAW, None);
    expect(
        packets.err() == Some(Errno::PERM),
        "raw sockets are possible",
    )?;
    let pattern = Path::new("/proc/sys/kernel/core_pattern");
    let opened = OpenOptions::new().write(true).open(pattern);
    expect(opened.is_err(), "the kernel's settings are writable")?;
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open("/.posse-probe");
    if made.is_ok() {
        let _ = fs::remove_file("/.posse-probe");
    }
    expect(made.is_err(), "/ is writable")?;
    Ok(ExitCode::SUCCESS)
}

fn expect(holds: bool, otherwise: &str) -> Result<(), LaunchError> {
    let failed = || LaunchError::new("it does not hold", otherwise);
    holds.then_some(()).ok_or_else(failed)
}
