//! Running a command in a shell, from its start until nothing of it is left. The one place where tools
//! start processes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use posse_runtime::tool::ToolContext;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use crate::capture::Capture;
use crate::processes::{Family, MARK, Member, gone, within};

/// What is posse's own and no command's business.
const SECRETS: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];
/// Becomes bash, or stays what it is where there is none.
const BASH: &str = r#"command -v bash >/dev/null 2>&1 && exec bash -c "$1"; exec sh -c "$1""#;
/// How long what the shell leaves behind may take to end by itself, `>(tee log)` for one.
const AFTERMATH: Duration = Duration::from_millis(100);
/// How long a shell that was killed may take to be gone.
const REAP_WAIT: Duration = Duration::from_millis(100);
/// How much is read after the end. A pipe holds less; more comes from who could not be ended.
const MOST_LEFT: usize = 4 << 20;

/// A running shell.
pub(crate) struct Shell {
    child: Child,
    exited: Member,
    output: pipe::Receiver,
    family: Family,
}

/// How a command ended.
pub(crate) struct Ending {
    pub(crate) how: How,
    /// How many processes were still there and had to be ended.
    pub(crate) ended: usize,
}

/// What came first.
pub(crate) enum How {
    /// The shell was done.
    Exited(Option<ExitStatus>),
    /// Time was up.
    TimedOut,
    /// The call was cancelled.
    Interrupted,
}

impl Shell {
    /// Starts a command in the workspace's directory.
    pub(crate) fn start(command: &str, context: &ToolContext) -> io::Result<Self> {
        let cwd = &context.workspace.cwd;
        if !cwd.is_dir() {
            return Err(io::Error::other(format!("{} is no directory", cwd.display())));
        }
        let (output, printed) = io::pipe()?;
        let start = |apart: Apart| {
            let marker = &context.marker;
            let (out, err) = (printed.try_clone()?, printed.try_clone()?);
            self::command(apart, command, cwd, marker).stdout(out).stderr(err).spawn()
        };
        let child = match start(Apart::Session) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => start(Apart::Group)?,
            started => started?,
        };
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.ok_or_else(|| io::Error::other("the shell has no number"))?;
        let exited = Member::watch(pidfd_open(pid, PidfdFlags::empty())?);
        let exited = exited.ok_or_else(|| io::Error::other("the shell cannot be watched"))?;
        let output = pipe::Receiver::from_owned_fd(output.into())?;
        let family = Family::marked(&context.marker).with_group(pid);
        Ok(Self { child, exited, output, family })
    }

    /// Follows it to its end, and sees to it that nothing of it is left.
    pub(crate) async fn follow(
        mut self,
        limit: Duration,
        context: &ToolContext,
        capture: &mut Capture,
    ) -> io::Result<Ending> {
        let clock = &*context.clock;
        // Also when nobody waits for the end any more.
        let leash = Leash(Some(self.family.clone()));
        let how = {
            let stop = async {
                tokio::select! {
                    biased;
                    () = context.cancel.cancelled() => How::Interrupted,
                    () = clock.sleep(limit) => How::TimedOut,
                    () = self.exited.gone() => How::Exited(None),
                }
            };
            reading(&mut self.output, capture, stop).await
        };
        if matches!(how, How::Exited(_)) {
            let aftermath = async {
                let left = self.family.living().await;
                within(clock, AFTERMATH, gone(left)).await
            };
            reading(&mut self.output, capture, aftermath).await;
        }
        let ended = reading(&mut self.output, capture, self.family.end(clock)).await;
        leash.off();
        let status = within(clock, REAP_WAIT, self.child.wait()).await.transpose()?;
        drain(self.output, capture).await?;
        let how = if matches!(how, How::Exited(_)) { How::Exited(status) } else { how };
        Ok(Ending { how, ended })
    }
}

/// How a shell stands apart from posse. Its number is that of its group in both ways.
#[derive(Clone, Copy)]
enum Apart {
    /// In a session of its own, by the program of util-linux and busybox: it has no terminal. Nothing can
    /// be written past posse to the user's, and who asks there for a password fails at once.
    Session,
    /// In a group of its own, where there is no such program.
    Group,
}

#[expect(clippy::disallowed_methods, reason = "this is where tools start processes")]
fn command(apart: Apart, script: &str, cwd: &Path, marker: &str) -> Command {
    let mut command = match apart {
        // Replaces itself by the program, because it leads no group yet.
        Apart::Session => {
            let mut command = Command::new("setsid");
            command.arg("sh");
            command
        }
        Apart::Group => {
            let mut command = Command::new("sh");
            command.process_group(0);
            command
        }
    };
    command.args(["-c", BASH, "sh", script]).current_dir(cwd).stdin(Stdio::null());
    command.env(MARK, marker).env("GIT_TERMINAL_PROMPT", "0").kill_on_drop(true);
    for secret in SECRETS {
        command.env_remove(secret);
    }
    command
}

/// Reads on until `work` is done; a full pipe must not hold up who is asked to end.
async fn reading<T>(output: &mut pipe::Receiver, capture: &mut Capture, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut piece = vec![0; 64 << 10];
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            read = output.read(&mut piece), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(length) => capture.take(&piece[..length]).await,
            },
        }
    }
}

/// Takes what is still in the pipe, without waiting for more.
async fn drain(output: pipe::Receiver, capture: &mut Capture) -> io::Result<()> {
    let mut output = File::from(output.into_nonblocking_fd()?);
    let mut piece = vec![0; 64 << 10];
    let mut total = 0;
    while total < MOST_LEFT {
        match output.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => {
                capture.take(&piece[..length]).await;
                total += length;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Kills a family when it is dropped.
struct Leash(Option<Family>);

impl Leash {
    fn off(mut self) {
        self.0 = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if let Some(family) = &self.0 {
            family.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_go_along() {
        let command = command(Apart::Session, "env", Path::new("/"), "mark");
        let changes: Vec<_> = command.as_std().get_envs().collect();
        for secret in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"] {
            assert!(changes.contains(&(secret.as_ref(), None)), "{secret}");
        }
        assert!(changes.contains(&("POSSE_CALL".as_ref(), Some("mark".as_ref()))));
        assert!(changes.contains(&("GIT_TERMINAL_PROMPT".as_ref(), Some("0".as_ref()))));
    }
}
