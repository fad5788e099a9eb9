//! Starts processes apart from posse. The one place where tools start shells.

use std::io;

use tokio::process::{Child, Command};

/// What is posse's own and no command's business.
pub(crate) const SECRETS: [&str; 3] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
];

/// Starts `sh` apart from posse; its number is that of its group. `prepare` says what it is to do.
///
/// It is in a session of its own, by the program of util-linux and busybox, which replaces itself because it
/// leads no group yet: it has no terminal. Nothing can be written past posse to the user's, and who asks
/// there for a password fails at once. Where there is no such program, it is in a group of its own.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where tools start processes"
)]
pub(crate) fn spawn_detached(
    prepare: impl Fn(&mut Command) -> io::Result<()>,
) -> io::Result<Child> {
    let mut session = Command::new("setsid");
    session.arg("sh");
    prepare(&mut session)?;
    match session.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut group = Command::new("sh");
            group.process_group(0);
            prepare(&mut group)?;
            group.spawn()
        }
        started => started,
    }
}
