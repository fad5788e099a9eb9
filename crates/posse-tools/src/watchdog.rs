//! The watchdog: a small process beside posse that starts posse's commands, adopts what they leave
//! behind, waits for posse to end, in whatever way, and kills what is left then. It is started with
//! the first command, in a session of its own, and watches posse through a connection that only
//! posse holds open: when that closes, posse is gone.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpgrp, getpid, pidfd_send_signal, set_child_subreaper};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use crate::cgroup::{self, DOOR};
use crate::detached::{SECRETS, spawn_detached};
use crate::process_start::ProcessStart;
use crate::process_table::{self, CALL_MARK, HOST_MARK, ProcessTable, ScanRequest};
use crate::spawner::serve::{self, ProcessTerms};
use crate::spawner::{ProcessEnds, SpawnedProcess, Spawner};

/// The word by which a program is asked to be a watchdog.
pub const GUARD: &str = "guard";

/// Signals that a terminal or a person sends, and that do not end it.
const UNHEARD: [SignalKind; 4] = [
    SignalKind::hangup(),
    SignalKind::interrupt(),
    SignalKind::quit(),
    SignalKind::terminate(),
];
/// How long the watchdog waits for killed processes before it looks again.
const KILL_WAIT: Duration = Duration::from_millis(100);
/// How long it waits before it looks again if it has found nothing, or removes a cgroup again.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};
/// How often it looks at most, so that a process that cannot be killed does not keep it forever.
const ROUNDS: usize = 18;
/// How many looks in a row must find nothing. A process that is just executing another program
/// carries no mark for a moment, so one look is not enough.
const QUIET: usize = 2;
/// Shell script that starts a program apart from posse: not as its child, and ignoring signals
/// until it handles them itself.
const APART: &str = r#"trap "" HUP INT QUIT TERM; exec 3<&0; "$@" <&3 3<&- &"#;

/// Makes sure that nothing outlives posse. Clones share one watchdog process.
#[derive(Clone, Debug)]
pub struct Watchdog(Arc<WatchdogProgram>);

/// The program of the watchdog, and the connection to its process once it runs.
#[derive(Debug)]
struct WatchdogProgram {
    program: PathBuf,
    /// Closing it, which the kernel does for a killed process, tells the watchdog that posse is
    /// gone.
    running: Mutex<Option<Arc<Spawner>>>,
}

impl Watchdog {
    /// Returns a watchdog that runs `program`, which must call [`run_watchdog`] if its first
    /// argument is [`GUARD`]. Starts nothing before the first command.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self(Arc::new(WatchdogProgram {
            program: program.into(),
            running: Mutex::new(None),
        }))
    }

    /// Returns one that runs already.
    #[cfg(test)]
    pub(crate) fn at(spawner: Spawner) -> Self {
        Self(Arc::new(WatchdogProgram {
            program: PathBuf::new(),
            running: Mutex::new(Some(Arc::new(spawner))),
        }))
    }

    /// Has a shell started.
    pub(crate) async fn start_process(
        &self,
        start: &ProcessStart,
        ends: ProcessEnds,
    ) -> io::Result<SpawnedProcess> {
        let spawner = self.running()?;
        match spawner.start(start, ends.try_clone()?).await {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // It was killed.
                self.forget(&spawner);
                self.running()?.start(start, ends).await
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                // It may have started the command, which must not run twice.
                self.forget(&spawner);
                Err(error)
            }
            started => started,
        }
    }

    /// Starts the watchdog unless it runs already.
    fn running(&self) -> io::Result<Arc<Spawner>> {
        // Held while the process is started: of two first commands, only one may start it.
        let mut running = self.known();
        if let Some(spawner) = &*running {
            return Ok(Arc::clone(spawner));
        }
        let program = &self.0.program;
        if !program.exists() {
            let what = format!(
                "{}, the guard process, is gone; start posse again",
                program.display()
            );
            return Err(io::Error::other(what));
        }
        let id = Uuid::now_v7();
        let cgroup = cgroup::named(&cgroup::name(&id.to_string()));
        let spawner = self.start(id, cgroup.as_deref())?;
        // Made only now: the watchdog removes it, so it must be running before the cgroup exists.
        // Without it, what it would hold is found by its mark and by descent.
        let _made = cgroup.is_some_and(|cgroup| cgroup::make(&cgroup));
        Ok(Arc::clone(running.insert(Arc::new(spawner))))
    }

    /// Has the next command start another watchdog in place of this one.
    fn forget(&self, spawner: &Arc<Spawner>) {
        let mut running = self.known();
        running.take_if(|known| Arc::ptr_eq(known, spawner));
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<Spawner>>> {
        let running = self.0.running.lock();
        running.unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the process, and returns the connection to it.
    fn start(&self, id: Uuid, cgroup: Option<&Path>) -> io::Result<Spawner> {
        let (spawner, theirs) = Spawner::pair()?;
        let prepare = |command: &mut Command| {
            command
                .args(["-c", APART, "sh"])
                .arg(&self.0.program)
                .args([GUARD, &id.to_string()])
                .args(cgroup)
                .arg(getpgrp().as_raw_nonzero().to_string());
            // It must not hold anybody else's files open, and must not carry the mark of a call
            // that posse itself may run in: the end of that call would kill it.
            command
                .stdin(theirs.try_clone()?)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .current_dir("/");
            for name in SECRETS.into_iter().chain([CALL_MARK, HOST_MARK]) {
                command.env_remove(name);
            }
            Ok(())
        };
        // The shell exits at once and is reaped with the next process that is started.
        spawn_detached(prepare, |sh| tokio::process::Command::from(sh).spawn())?;
        Ok(spawner)
    }
}

/// Returns what a process watches over, if it is a watchdog: by its command line, since its
/// environment can be hidden.
pub(crate) fn watched_by(pid: i32) -> Option<String> {
    let mut line = Vec::new();
    process_table::read_all(pid, "cmdline", &mut line);
    let mut words = line.split(|byte| *byte == 0).skip(1);
    words.next().filter(|word| *word == GUARD.as_bytes())?;
    let id = std::str::from_utf8(words.next()?).ok()?;
    Uuid::try_parse(id).ok().map(|id| id.to_string())
}

/// Starts commands until the other end of `posse` is closed, then kills all that it has started or
/// adopted, that carries the mark `id` or is in the cgroup. `arguments` are those that [`Watchdog`]
/// appends: the mark, the cgroup if there is one, and the process group of posse itself. Returns
/// none if they are anything else.
pub fn run_watchdog(arguments: &[OsString], posse: impl AsFd) -> Option<()> {
    let (id, cgroup, posses) = match arguments {
        [id, group] => (id, None, group),
        [id, cgroup, group] => (id, Some(Path::new(cgroup)), group),
        _ => return None,
    };
    let posses: i32 = posses.to_str().and_then(|group| group.parse().ok())?;
    let id = id
        .to_str()
        .and_then(|id| Uuid::try_parse(id).ok())?
        .to_string();
    let cgroup = cgroup.filter(|directory| cgroup::is_named(directory, &cgroup::name(&id)));
    let strangers = serve::children();
    // Commands then are the only ones that it can adopt. An older kernel does not know this.
    let _ = set_child_subreaper(Some(getpid()));
    let _unheard = handle_signals();
    let terms = ProcessTerms {
        host: id,
        door: cgroup.map(|cgroup| cgroup.join(DOOR)),
    };
    serve::serve(posse.as_fd(), &terms);
    let left = LeftProcesses {
        mark: format!("{HOST_MARK}={}", terms.host).into_bytes(),
        cgroup,
        posses,
        strangers,
    };
    let mut quiet = 0;
    for _ in 0..ROUNDS {
        let left = left.find();
        quiet = if left.is_empty() { quiet + 1 } else { 0 };
        if quiet == QUIET {
            break;
        }
        for handle in &left {
            // Fails only for a process that has already ended.
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
        wait(&left);
    }
    let counted = cgroup::name(&terms.host);
    for _ in 0..ROUNDS {
        if cgroup::remove_limit(&counted) {
            break;
        }
        // A process that has just ended may stay in it for a moment.
        let _ = poll(&mut [], Some(&LOOK_AGAIN));
    }
    if let Some(cgroup) = cgroup {
        for _ in 0..ROUNDS {
            if cgroup::remove(cgroup) {
                break;
            }
            cgroup::wait(cgroup);
        }
    }
    Some(())
}

/// Handles signals by doing nothing. Commands do not inherit that, as they would inherit that a
/// signal is ignored.
fn handle_signals() -> io::Result<(Runtime, Vec<tokio::signal::unix::Signal>)> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    let handled = UNHEARD.map(signal).into_iter().collect::<io::Result<_>>()?;
    drop(entered);
    Ok((runtime, handled))
}

/// What is to be killed when posse is gone.
struct LeftProcesses<'a> {
    mark: Vec<u8>,
    cgroup: Option<&'a Path>,
    /// The group of posse, which is left out: it holds the processes that started posse, and for a
    /// moment each process that posse has just started.
    posses: i32,
    /// Children that it has neither started nor adopted.
    strangers: Vec<Pid>,
}

impl LeftProcesses<'_> {
    /// Returns handles of all that are alive.
    fn find(&self) -> Vec<OwnedFd> {
        if let Some(cgroup) = self.cgroup {
            // Processes that this does not reach are found by their mark.
            let _ = cgroup::kill(cgroup);
        }
        let inside = self.cgroup.map(cgroup::members).unwrap_or_default();
        let table = ProcessTable::since(ScanRequest::now());
        // Groups of commands contain nothing else, so whole groups can be killed.
        let marked = table
            .processes()
            .iter()
            .filter(|process| process.carries(&self.mark));
        let groups: Vec<i32> = marked
            .map(|process| process.group)
            .filter(|group| *group != self.posses)
            .collect();
        let own = getpid().as_raw_nonzero().get();
        let is_stranger = |pid| {
            self.strangers
                .iter()
                .any(|it| it.as_raw_nonzero().get() == pid)
        };
        table.family(|process| {
            process.carries(&self.mark)
                || groups.contains(&process.group)
                || inside.contains(&process.pid)
                || (process.parent == own && !is_stranger(process.pid))
        })
    }
}

/// Waits until all have ended, but no longer than [`KILL_WAIT`]. Waits a moment if there are none:
/// a process that is executing another program has no environment until that has begun.
fn wait(handles: &[OwnedFd]) {
    if handles.is_empty() {
        // If this fails, the next look only comes sooner.
        let _ = poll(&mut [], Some(&LOOK_AGAIN));
    }
    let until = Instant::now() + KILL_WAIT;
    for handle in handles {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: 0,
            tv_nsec: left.subsec_nanos().into(),
        };
        // If this fails, the next look only comes sooner.
        let _ = poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&left));
    }
}
