//! The watchdog: a small process beside posse that waits for posse to end, in whatever way, and
//! kills what posse has left running. It is started with the first command, in a session of its
//! own, and watches posse through a pipe that only posse holds open: when the pipe closes, posse
//! is gone.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, pidfd_send_signal};
use uuid::Uuid;

use crate::cgroup;
use crate::detached::{SECRETS, spawn_detached};
use crate::process_table::{CALL_MARK, HOST_MARK, ProcessTable, ScanRequest};

/// How long the watchdog waits for killed processes before it looks again.
const KILL_WAIT: Duration = Duration::from_millis(100);
/// How often it looks at most, so that a process that cannot be killed does not keep it forever.
const ROUNDS: usize = 18;
/// How many looks in a row must find nothing. A process that is just executing another program
/// carries no mark for a moment, so one look is not enough.
const QUIET: usize = 2;
/// Shell script that starts a program apart from posse: not as its child, and ignoring the
/// signals that a terminal or another process sends to the group.
const APART: &str = r#"trap "" HUP INT QUIT TERM; exec 3<&0; "$@" <&3 3<&- &"#;

/// Makes sure that nothing outlives posse. Clones share one watchdog process.
#[derive(Clone, Debug)]
pub struct Watchdog(Arc<WatchdogProgram>);

/// The command line of the watchdog, and its process once it runs.
#[derive(Debug)]
struct WatchdogProgram {
    program: PathBuf,
    arguments: Vec<OsString>,
    post: Mutex<Option<Arc<Post>>>,
}

/// A running watchdog: what it guards, and the pipe that tells it that posse is alive.
#[derive(Debug)]
pub(crate) struct Post {
    /// The mark in the environment of every guarded process.
    pub(crate) id: Uuid,
    /// The cgroup of the guarded processes, where cgroups can be used.
    pub(crate) cgroup: Option<PathBuf>,
    /// Never written to: closing it, which the kernel does for a killed process, is the signal.
    _alive: PipeWriter,
}

impl Watchdog {
    /// Returns a watchdog that runs `program` with these arguments, followed by those that
    /// [`run_watchdog`] reads; the program must call it. Starts nothing before the first command.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self(Arc::new(WatchdogProgram {
            program: program.into(),
            arguments,
            post: Mutex::new(None),
        }))
    }

    /// Starts the watchdog unless it runs already.
    pub(crate) fn post(&self) -> io::Result<Arc<Post>> {
        // Held while the process is started: of two first commands, only one may start it.
        let mut post = self.0.post.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(post) = &*post {
            return Ok(Arc::clone(post));
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
        let cgroup = cgroup::named(&name(&id.to_string()));
        let alive = self.start(id, cgroup.as_deref())?;
        // Made only now: the watchdog removes it, so it must be running before the cgroup exists.
        let cgroup = cgroup.filter(|cgroup| cgroup::make(cgroup));
        Ok(Arc::clone(post.insert(Arc::new(Post {
            id,
            cgroup,
            _alive: alive,
        }))))
    }

    /// Starts the process, and returns the end of the pipe that keeps it waiting.
    fn start(&self, id: Uuid, cgroup: Option<&Path>) -> io::Result<PipeWriter> {
        let (ended, alive) = io::pipe()?;
        // The shell exits at once and is reaped with the next process that is started.
        spawn_detached(|command| {
            command
                .args(["-c", APART, "sh"])
                .arg(&self.0.program)
                .args(&self.0.arguments);
            command
                .arg(id.to_string())
                .args(cgroup)
                .arg(getpgrp().as_raw_nonzero().to_string());
            // It must not hold anybody else's files open, and must not carry the mark of a call
            // that posse itself may run in: the end of that call would kill it.
            command
                .stdin(ended.try_clone()?)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .current_dir("/");
            for name in SECRETS.into_iter().chain([CALL_MARK, HOST_MARK]) {
                command.env_remove(name);
            }
            Ok(())
        })?;
        Ok(alive)
    }
}

/// Returns the cgroup's name.
fn name(id: &str) -> String {
    format!("posse-{id}")
}

/// Waits until the other end of `alive` is closed, then kills every process that carries the mark
/// `id` or is in the cgroup. `arguments` are those that [`Watchdog`] appends: the mark, the
/// cgroup if there is one, and the process group of posse itself. Returns none if they are
/// anything else.
pub fn run_watchdog(arguments: &[OsString], mut alive: impl Read) -> Option<()> {
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
    let cgroup = cgroup.filter(|directory| cgroup::is_named(directory, &name(&id)));
    // A pipe that cannot be read any more is as good as closed.
    let _ = io::copy(&mut alive, &mut io::sink());
    let mark = format!("{HOST_MARK}={id}").into_bytes();
    let mut quiet = 0;
    for _ in 0..ROUNDS {
        let left = find(&mark, cgroup, posses);
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

/// Returns handles of all processes to kill. The group `posses` is left out: it holds the
/// processes that started posse, and for a moment each process that posse has just started.
fn find(mark: &[u8], cgroup: Option<&Path>, posses: i32) -> Vec<OwnedFd> {
    if let Some(cgroup) = cgroup {
        // Processes that this does not reach are found by their mark.
        let _ = cgroup::kill(cgroup);
    }
    let inside = cgroup.map(cgroup::members).unwrap_or_default();
    let table = ProcessTable::since(ScanRequest::now());
    // Groups of commands contain nothing else, so whole groups can be killed.
    let marked = table
        .processes()
        .iter()
        .filter(|process| process.carries(mark));
    let groups: Vec<i32> = marked
        .map(|process| process.group)
        .filter(|group| *group != posses)
        .collect();
    table.family(|process| {
        process.carries(mark) || groups.contains(&process.group) || inside.contains(&process.pid)
    })
}

/// Waits until all have ended, but no longer than [`KILL_WAIT`].
fn wait(handles: &[OwnedFd]) {
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
