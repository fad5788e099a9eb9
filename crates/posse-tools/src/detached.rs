//! Starts processes apart from posse. This is the only place where tools start shells.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Variables of posse that commands must not see.
pub(crate) const SECRETS: [&str; 3] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
];

/// Starts `sh` apart from posse; its pid is that of its group. `prepare` sets what it shall do,
/// and `spawn` starts it.
///
/// It gets a session of its own by `setsid` of util-linux or busybox, which replaces itself
/// because it does not lead a group yet. So it has no terminal: nothing can be written to the
/// user's terminal behind posse's back, and a program that asks there for a password fails at
/// once. Without `setsid` it gets a group of its own.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where tools start processes"
)]
pub(crate) fn spawn_detached<T>(
    prepare: impl Fn(&mut Command) -> io::Result<()>,
    spawn: impl Fn(Command) -> io::Result<T>,
) -> io::Result<T> {
    let mut session = Command::new("setsid");
    session.arg("sh");
    prepare(&mut session)?;
    match spawn(session) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => spawn_grouped(prepare, spawn),
        started => started,
    }
}

/// Starts `sh` in a group of its own, and in the session of this process. The watchdog has one
/// without a terminal, and a millisecond is saved for each program.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where tools start processes"
)]
pub(crate) fn spawn_grouped<T>(
    prepare: impl Fn(&mut Command) -> io::Result<()>,
    spawn: impl Fn(Command) -> io::Result<T>,
) -> io::Result<T> {
    let mut group = Command::new("sh");
    group.process_group(0);
    prepare(&mut group)?;
    spawn(group)
}
