//! Running a command in a shell, from its start until nothing of it is left. The one place where tools
//! start processes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use posse_port::clock::Clock;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::capture::Sink;
use crate::cgroup::DOOR;
use crate::detached::{SECRETS, spawn_detached};
use crate::process_table::{CALL_MARK, HOST_MARK};
use crate::processes::{Family, WatchedProcess, gone, within};
use crate::watchdog::{Post, Watchdog};

/// Enters the cgroup whose door is `$2`, if it can, and becomes bash, or sh where there is no bash.
///
/// Adds a setting for git to those in the environment: git uses a bare repository only if it is
/// named. A clone can contain a directory that looks like one, whose settings run programs.
const BASH: &str = r#"case ${GIT_CONFIG_COUNT:-x} in *[!0-9]*) GIT_CONFIG_COUNT=0;; esac
export "GIT_CONFIG_KEY_$GIT_CONFIG_COUNT=safe.bareRepository" "GIT_CONFIG_VALUE_$GIT_CONFIG_COUNT=explicit"
export GIT_CONFIG_COUNT=$((GIT_CONFIG_COUNT + 1))
[ -z "$2" ] || { echo 0 >"$2"; } 2>/dev/null
command -v bash >/dev/null 2>&1 && exec bash -c "$1"; exec sh -c "$1""#;
/// How long what the shell leaves behind may take to end by itself, `>(tee log)` for one.
const AFTERMATH: Duration = Duration::from_millis(100);
/// How long a shell that was killed may take to be gone.
const REAP_WAIT: Duration = Duration::from_millis(100);
/// How much is read after the end. A pipe holds less; more comes from who could not be ended.
const MOST_LEFT: usize = 4 << 20;

/// What tells git of a repository, whatever directory it is started in: a hook that started posse has it.
pub(crate) const OF_A_REPOSITORY: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
];

/// A running shell. All that it has started is killed when it is dropped.
pub(crate) struct RunningShell {
    /// Dropped first: while the child is not reaped, no stranger can have its number.
    guard: KillGuard,
    child: Child,
    exited: WatchedProcess,
    output: pipe::Receiver,
}

/// What a shell is to run, and how.
pub(crate) struct ShellJob<'a> {
    pub(crate) command: &'a str,
    pub(crate) cwd: &'a Path,
    /// What its processes are found by.
    pub(crate) marker: &'a str,
    /// Variables of posse's environment that it is not to have, beside posse's secrets.
    pub(crate) without: &'a [&'a str],
    /// Who ends it if posse cannot.
    pub(crate) guardian: Option<&'a Watchdog>,
}

/// How long a shell may go on.
pub(crate) struct Bounds<'a> {
    pub(crate) limit: Option<Duration>,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) clock: &'a dyn Clock,
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

impl RunningShell {
    /// Starts a command.
    pub(crate) fn start(job: &ShellJob<'_>) -> io::Result<Self> {
        if !job.cwd.is_dir() {
            return Err(io::Error::other(format!(
                "{} is not a directory",
                job.cwd.display()
            )));
        }
        let post = job.guardian.map(Watchdog::post).transpose()?;
        let (output, printed) = io::pipe()?;
        let child = spawn_detached(|command| {
            prepare(command, job, post.as_deref());
            command
                .stdout(printed.try_clone()?)
                .stderr(printed.try_clone()?);
            Ok(())
        })?;
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.ok_or_else(|| io::Error::other("the shell has no process id"))?;
        let guard = KillGuard {
            family: Family::marked(job.marker).with_group(pid),
            on: true,
        };
        let exited = WatchedProcess::watch(pidfd_open(pid, PidfdFlags::empty())?);
        let exited = exited.ok_or_else(|| io::Error::other("the shell cannot be watched"))?;
        let output = pipe::Receiver::from_owned_fd(output.into())?;
        Ok(Self {
            guard,
            child,
            exited,
            output,
        })
    }

    /// Follows it to its end, and sees to it that nothing of it is left.
    pub(crate) async fn follow(
        mut self,
        bounds: Bounds<'_>,
        sink: &mut impl Sink,
    ) -> io::Result<Ending> {
        let Bounds {
            limit,
            cancel,
            clock,
        } = bounds;
        let family = self.guard.family.clone();
        let how = {
            let time_is_up = async {
                match limit {
                    Some(limit) => clock.sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            let stop = async {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => How::Interrupted,
                    () = time_is_up => How::TimedOut,
                    () = self.exited.gone() => How::Exited(None),
                }
            };
            reading(&mut self.output, sink, stop).await
        };
        if matches!(how, How::Exited(_)) {
            let aftermath = async {
                let left = family.living().await;
                within(clock, AFTERMATH, gone(left)).await
            };
            reading(&mut self.output, sink, aftermath).await;
        }
        let ended = reading(&mut self.output, sink, family.end(clock)).await;
        self.guard.on = false;
        let status = within(clock, REAP_WAIT, self.child.wait())
            .await
            .transpose()?;
        drain(self.output, sink).await?;
        let how = if matches!(how, How::Exited(_)) {
            How::Exited(status)
        } else {
            how
        };
        Ok(Ending { how, ended })
    }
}

fn prepare(command: &mut Command, job: &ShellJob<'_>, post: Option<&Post>) {
    command
        .args(["-c", BASH, "sh", job.command])
        .current_dir(job.cwd)
        .stdin(Stdio::null());
    command
        .env(CALL_MARK, job.marker)
        .env("GIT_TERMINAL_PROMPT", "0")
        .kill_on_drop(true);
    if let Some(post) = post {
        command.env(HOST_MARK, post.id.to_string());
        command.args(post.cgroup.as_ref().map(|cgroup| cgroup.join(DOOR)));
    }
    for name in SECRETS.iter().chain(job.without) {
        command.env_remove(name);
    }
}

/// Reads on until `work` is done; a full pipe must not hold up who is asked to end.
async fn reading<T>(
    output: &mut pipe::Receiver,
    sink: &mut impl Sink,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    let mut piece = vec![0; 64 << 10];
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            read = output.read(&mut piece), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(length) => sink.take(&piece[..length]).await,
            },
        }
    }
}

/// Takes what is still in the pipe, without waiting for more.
async fn drain(output: pipe::Receiver, sink: &mut impl Sink) -> io::Result<()> {
    let mut output = File::from(output.into_nonblocking_fd()?);
    let mut piece = vec![0; 64 << 10];
    let mut total = 0;
    while total < MOST_LEFT {
        match output.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => {
                sink.take(&piece[..length]).await;
                total += length;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Kills a family when it is dropped.
struct KillGuard {
    family: Family,
    on: bool,
}

impl Drop for KillGuard {
    fn drop(&mut self) {
        if self.on {
            self.family.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "nothing is started")]
    fn secrets_do_not_go_along() {
        let mut command = Command::new("sh");
        let job = ShellJob {
            command: "env",
            cwd: Path::new("/"),
            marker: "mark",
            without: &[],
            guardian: None,
        };
        prepare(&mut command, &job, None);
        let changes: Vec<_> = command.as_std().get_envs().collect();
        for secret in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "OPENAI_API_KEY",
        ] {
            assert!(changes.contains(&(secret.as_ref(), None)), "{secret}");
        }
        assert!(changes.contains(&("POSSE_CALL".as_ref(), Some("mark".as_ref()))));
        assert!(changes.contains(&("GIT_TERMINAL_PROMPT".as_ref(), Some("0".as_ref()))));
    }

    #[tokio::test]
    #[expect(
        clippy::disallowed_methods,
        reason = "it has no children that could stay"
    )]
    async fn settings_that_the_environment_has_for_git_are_kept() {
        for count in [Some("1"), None, Some("odd")] {
            let mut command = Command::new("sh");
            let job = ShellJob {
                command: "git config --get-regexp 'a[.]b|safe'",
                cwd: Path::new("/"),
                marker: "mark",
                without: &[],
                guardian: None,
            };
            prepare(&mut command, &job, None);
            command
                .env("GIT_CONFIG_KEY_0", "a.b")
                .env("GIT_CONFIG_VALUE_0", "c");
            command.env_remove("GIT_CONFIG_COUNT");
            command.envs(count.map(|count| ("GIT_CONFIG_COUNT", count)));
            let printed = command.output().await.unwrap().stdout;
            let printed = String::from_utf8(printed).unwrap();
            let kept = printed.starts_with("a.b c\n");
            assert_eq!(kept, count == Some("1"), "{printed}");
            assert!(
                printed.ends_with("safe.barerepository explicit\n"),
                "{printed}"
            );
        }
    }
}
