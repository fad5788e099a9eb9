//! A process that posse has started, until nothing of it is left. The one place where tools start
//! processes.

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use posse_port::clock::Clock;
use posse_sandbox::Launcher;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::process::{Child, Command};

use crate::detached::spawn_detached;
use crate::process_start::ProcessStart;
use crate::processes::{Family, WatchedProcess, within};
use crate::spawner::{ProcessEnds, SpawnedProcess};
use crate::watchdog::Watchdog;

/// How long a process that was killed may take to be gone.
const REAP_WAIT: Duration = Duration::from_millis(100);
/// How old a process is at most whose number was certainly given to no other since it was started.
const YOUNG: Duration = Duration::from_secs(1);

/// A process that was started. All that it has started is killed when it is dropped.
pub(crate) struct StartedProcess {
    /// Dropped first: while the child is not reaped, no stranger can have its number.
    guard: KillGuard,
    handle: ProcessHandle,
    started: Instant,
    /// Its exit status, once its end is known: none if the status is not.
    ended: Option<Option<ExitStatus>>,
}

/// Who starts processes.
pub(crate) enum Starter {
    /// The watchdog.
    Watchdog(Watchdog),
    /// This process; what is confined by this launcher.
    This(Launcher),
}

/// The process itself. Dropping it kills it and gives its number away.
enum ProcessHandle {
    /// A child of the watchdog.
    Spawned(SpawnedProcess),
    /// A child of posse.
    Own(Child, WatchedProcess),
}

impl StartedProcess {
    /// Starts a process: below the watchdog, if there is one. `marker` is what it and all that it
    /// starts are found by. If this is dropped before it is done, they are killed once it is.
    #[expect(
        clippy::disallowed_methods,
        reason = "it has to come to its end, in a moment, whoever waits"
    )]
    pub(crate) async fn start(
        start: ProcessStart,
        marker: String,
        starter: Starter,
        ends: ProcessEnds,
    ) -> io::Result<Self> {
        // The process may be running before it is known here.
        let starting = tokio::spawn(Self::start_now(start, marker, starter, ends));
        starting.await.map_err(io::Error::other)?
    }

    async fn start_now(
        start: ProcessStart,
        marker: String,
        starter: Starter,
        ends: ProcessEnds,
    ) -> io::Result<Self> {
        let cwd = start.cwd();
        if !cwd.is_dir() {
            let what = format!("{} is not a directory", cwd.display());
            return Err(io::Error::other(what));
        }
        let started = Instant::now();
        let (pid, handle) = match starter {
            Starter::Watchdog(watchdog) => {
                let process = watchdog.start_process(&start, ends).await?;
                (process.pid, ProcessHandle::Spawned(process))
            }
            Starter::This(launcher) => start_own(&start, &launcher, &ends)?,
        };
        let guard = KillGuard {
            family: Family::marked(&marker).with_group(pid),
            on: true,
        };
        Ok(Self {
            guard,
            handle,
            started,
            ended: None,
        })
    }

    /// Returns the process and all that it has started.
    pub(crate) fn family(&self) -> Family {
        self.guard.family.clone()
    }

    /// Returns true if it has ended and certainly nothing is left of it. Cheap, but not always
    /// known.
    pub(crate) fn is_gone(&self) -> bool {
        self.ended.is_some() && self.started.elapsed() < YOUNG && self.guard.family.is_gone()
    }

    /// Waits for its end. Returns its exit status, if it is known by now.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        if let Some(status) = self.ended {
            return status;
        }
        let status = match &mut self.handle {
            ProcessHandle::Spawned(process) => process.ended().await,
            ProcessHandle::Own(_, process) => {
                process.gone().await;
                None
            }
        };
        self.ended = Some(status);
        status
    }

    /// Lets it go, once nothing of it is left. Returns its exit status.
    pub(crate) async fn reap(mut self, clock: &dyn Clock) -> io::Result<Option<ExitStatus>> {
        self.guard.on = false;
        let told = self.ended.flatten();
        let status = match self.handle {
            ProcessHandle::Spawned(_) => None,
            ProcessHandle::Own(mut child, _) => {
                within(clock, REAP_WAIT, child.wait()).await.transpose()?
            }
        };
        Ok(told.or(status))
    }
}

/// Starts a process as a child of this one.
fn start_own(
    start: &ProcessStart,
    launcher: &Launcher,
    ends: &ProcessEnds,
) -> io::Result<(Pid, ProcessHandle)> {
    let spawn = |command| Command::from(command).kill_on_drop(true).spawn();
    let child = match start {
        ProcessStart::Outside(process) => spawn_detached(
            |sh| {
                process.prepare(sh, None);
                ends.connect(sh)
            },
            spawn,
        )?,
        ProcessStart::Within(confined) => {
            let (plan, job) = (&confined.plan, confined.job.clone());
            let mut command = launcher.command_with(plan, job, ends.of_job())?;
            ends.connect_output(&mut command)?;
            spawn(command)?
        }
    };
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let pid = pid.ok_or_else(|| io::Error::other("the process has no id"))?;
    let exited = WatchedProcess::watch(pidfd_open(pid, PidfdFlags::empty())?);
    let exited = exited.ok_or_else(|| io::Error::other("the process cannot be watched"))?;
    Ok((pid, ProcessHandle::Own(child, exited)))
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
    use crate::process_start::{OutsideProcess, OutsideProgram};
    use crate::process_table::{ProcessTable, ScanRequest};
    use crate::spawner::tests::spawner;

    /// Number of processes with this marker.
    fn carrying(marker: &str) -> usize {
        let mark = format!("POSSE_CALL={marker}").into_bytes();
        let table = ProcessTable::since(ScanRequest::now());
        table.family(|process| process.carries(&mark)).len()
    }

    /// Its start is not known here when it is dropped.
    #[tokio::test]
    async fn what_is_dropped_while_it_starts_is_killed_with_all_that_it_has_started() {
        let marker = format!("starting-{}", std::process::id());
        let command = "(setsid sleep 1000 &); sleep 1000; sleep 1000";
        let start = ProcessStart::Outside(OutsideProcess {
            program: OutsideProgram::Shell(command.into()),
            cwd: "/".into(),
            marker: marker.as_str().into(),
            without: Vec::new(),
            variables: Vec::new(),
        });
        let ends = io::pipe().unwrap().1.into();
        let starter = Starter::Watchdog(Watchdog::at(spawner()));
        let mut starting = Box::pin(StartedProcess::start(start, marker.clone(), starter, ends));
        // The watchdog is asked, and its answer is not heard.
        tokio::select! {
            biased;
            _ = &mut starting => unreachable!("it needs an answer"),
            () = std::future::ready(()) => tokio::task::yield_now().await,
        }
        while carrying(&marker) < 3 {
            std::thread::yield_now();
        }
        drop(starting);
        let dropped = Instant::now();
        while carrying(&marker) > 0 {
            assert!(dropped.elapsed() < Duration::from_secs(20));
            tokio::task::yield_now().await;
        }
    }
}
