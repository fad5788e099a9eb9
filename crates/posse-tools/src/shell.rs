//! Running a command in a shell, from its start until nothing of it is left. The one place where tools
//! start processes.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitStatus;
use std::time::Duration;

use posse_port::clock::Clock;
use posse_sandbox::{JobEnds, Launcher};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::capture::Sink;
use crate::detached::spawn_detached;
use crate::process_start::ProcessStart;
use crate::processes::{Family, WatchedProcess, gone, within};
use crate::spawner::{ProcessEnds, SpawnedProcess};
use crate::watchdog::Watchdog;

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
    process: ShellProcess,
    output: pipe::Receiver,
}

/// Who starts shells.
pub(crate) enum Starter<'a> {
    /// The watchdog.
    Watchdog(&'a Watchdog),
    /// This process; commands in a sandbox by this launcher.
    This(&'a Launcher),
}

/// The process of a shell. Dropping it kills the shell and gives its number away.
enum ShellProcess {
    /// A child of the watchdog.
    Spawned(SpawnedProcess),
    /// A child of posse.
    Own(Child, WatchedProcess),
}

impl ShellProcess {
    /// Waits for its end. Returns its exit status, if it is known by now.
    async fn ended(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Spawned(shell) => shell.ended().await,
            Self::Own(_, process) => {
                process.gone().await;
                None
            }
        }
    }

    /// Reaps it, and returns its exit status unless that was told before.
    async fn reap(self, clock: &dyn Clock) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Spawned(_) => Ok(None),
            Self::Own(mut child, _) => within(clock, REAP_WAIT, child.wait()).await.transpose(),
        }
    }
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
    /// Starts a command: below the watchdog, if there is one. `marker` is what its processes are
    /// found by, `proxy` where its proxy is told what to accept on.
    pub(crate) async fn start(
        start: &ProcessStart,
        marker: &str,
        starter: Starter<'_>,
        proxy: Option<OwnedFd>,
    ) -> io::Result<Self> {
        let cwd = start.cwd();
        if !cwd.is_dir() {
            let what = format!("{} is not a directory", cwd.display());
            return Err(io::Error::other(what));
        }
        let (output, printed) = io::pipe()?;
        let ends = ProcessEnds {
            output: printed,
            proxy,
        };
        let output = pipe::Receiver::from_owned_fd(output.into())?;
        let (pid, process) = match starter {
            Starter::Watchdog(watchdog) => {
                let shell = watchdog.start_process(start, ends).await?;
                (shell.pid, ShellProcess::Spawned(shell))
            }
            Starter::This(launcher) => start_own(start, launcher, &ends)?,
        };
        let guard = KillGuard {
            family: Family::marked(marker).with_group(pid),
            on: true,
        };
        Ok(Self {
            guard,
            process,
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
                    status = self.process.ended() => How::Exited(status),
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
        let status = self.process.reap(clock).await?;
        drain(self.output, sink).await?;
        let how = match how {
            How::Exited(told) => How::Exited(told.or(status)),
            how => how,
        };
        Ok(Ending { how, ended })
    }
}

/// Starts a shell as a child of this process.
fn start_own(
    start: &ProcessStart,
    launcher: &Launcher,
    ends: &ProcessEnds,
) -> io::Result<(Pid, ShellProcess)> {
    let printed = &ends.output;
    let spawn = |command| Command::from(command).kill_on_drop(true).spawn();
    let child = match start {
        ProcessStart::Outside(command) => spawn_detached(
            |sh| {
                command.prepare(sh, None);
                sh.stdout(printed.try_clone()?).stderr(printed.try_clone()?);
                Ok(())
            },
            spawn,
        )?,
        ProcessStart::Within(confined) => {
            let (plan, job) = (&confined.plan, confined.job.clone());
            let ends = JobEnds {
                input: None,
                proxy: ends.proxy.as_ref().map(AsFd::as_fd),
            };
            let mut command = launcher.command_with(plan, job, ends)?;
            command
                .stdout(printed.try_clone()?)
                .stderr(printed.try_clone()?);
            spawn(command)?
        }
    };
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let pid = pid.ok_or_else(|| io::Error::other("the shell has no process id"))?;
    let exited = WatchedProcess::watch(pidfd_open(pid, PidfdFlags::empty())?);
    let exited = exited.ok_or_else(|| io::Error::other("the shell cannot be watched"))?;
    Ok((pid, ShellProcess::Own(child, exited)))
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
            // Before reading, which a command that prints all the time never lets wait.
            () = sink.due() => {}
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
