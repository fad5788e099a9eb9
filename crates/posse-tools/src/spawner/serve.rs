//! The watchdog's side: it starts shells and tells how they end, until posse is gone.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, geteuid, kill_process, kill_process_group,
    pidfd_open, waitid,
};

use crate::cgroup;
use crate::detached::{spawn_detached, spawn_grouped};
use crate::process_start::{OutsideProcess, OutsideProgram, ProcessStart};
use crate::process_table::HOST_MARK;
use crate::spawner::ProcessEnds;
use posse_sandbox::{ConfinedJob, Launcher, handover};

/// Maximum length of a request. The kernel gives no program more arguments and variables.
const LONGEST: u64 = 8 << 20;

/// What all shells of one posse process have in common.
pub(crate) struct ProcessTerms {
    /// The mark in their environment.
    pub(crate) host: String,
    /// The door of their cgroup.
    pub(crate) door: Option<PathBuf>,
}

/// A request to start a shell.
struct Request {
    start: ProcessStart,
    /// Where its start and its end are told.
    reports: UnixStream,
    ends: ProcessEnds,
}

/// A shell that was started.
struct Shell {
    pid: Pid,
    /// Becomes readable when it ends.
    exit: OwnedFd,
    /// Where its end is told; none once posse has hung up and no longer needs its number.
    reports: Option<UnixStream>,
    ended: bool,
}

/// Starts what `posse` asks for. Returns when it has closed its end.
pub(crate) fn serve(posse: BorrowedFd<'_>, terms: &ProcessTerms) {
    let mut shells: Vec<Shell> = Vec::new();
    while let Some(asked) = wait(posse, &shells) {
        for shell in &mut shells {
            shell.settle();
        }
        shells.retain(|shell| !shell.ended || shell.reports.is_some());
        reap_adopted(&shells);
        if asked {
            match receive(posse) {
                Ok(Some(request)) => shells.extend(start(request, terms)),
                // Not a request; whoever waits for its answer is told by the closed connection.
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }
}

/// Waits until something happens. Returns true if there is a request, none if that cannot be
/// known.
fn wait(posse: BorrowedFd<'_>, shells: &[Shell]) -> Option<bool> {
    let mut polled = vec![PollFd::from_borrowed_fd(posse, PollFlags::IN)];
    for shell in shells {
        // What has already happened would be reported again at once.
        let exit = (!shell.ended).then(|| PollFd::new(&shell.exit, PollFlags::IN));
        let closed = |reports| PollFd::new(reports, PollFlags::RDHUP);
        polled.extend(exit);
        polled.extend(shell.reports.as_ref().map(closed));
    }
    // A signal means nothing to it.
    while let Err(error) = poll(&mut polled, None) {
        if error != Errno::INTR {
            return None;
        }
    }
    let asked = polled.first()?;
    Some(!asked.revents().is_empty())
}

impl Shell {
    /// Tells its end. If posse has hung up, kills it, or lets its number go.
    fn settle(&mut self) {
        if !self.ended {
            // It is not reaped yet: while its group may be looked for, no other process can have
            // its number.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if let Ok(Some(status)) = waitid(WaitId::Pid(self.pid), options) {
                self.ended = true;
                let code = status.exit_status().map(|code| (code & 0xff) << 8);
                let raw = code.or(status.terminating_signal()).unwrap_or_default();
                self.report(raw);
            }
        }
        if self.reports.as_ref().is_some_and(is_closed) {
            self.reports = None;
        }
        match (&self.reports, self.ended) {
            (Some(_), _) => {}
            (None, false) => {
                // It does not lead its group in the first moment.
                let _ = kill_process(self.pid, Signal::KILL);
                let _ = kill_process_group(self.pid, Signal::KILL);
            }
            (None, true) => {
                let _ = waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED);
            }
        }
    }

    fn report(&mut self, raw: i32) {
        if let Some(reports) = &mut self.reports {
            // Fails only if nobody listens any more.
            let _ = writeln!(reports, "ended {raw}");
        }
    }
}

/// Returns true if the other end of a connection, which sends nothing, is closed.
fn is_closed(connection: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(recv(connection, &mut [0], flags), Err(Errno::AGAIN))
}

/// Receives a request; none if it is not one. Fails if posse is gone.
fn receive(posse: BorrowedFd<'_>) -> io::Result<Option<Request>> {
    let mut descriptors = handover::receive(posse)?.into_iter();
    let [Some(reports), Some(output), Some(message)] = [(); 3].map(|()| descriptors.next()) else {
        return Ok(None);
    };
    let mut text = Vec::new();
    File::from(message).take(LONGEST).read_to_end(&mut text)?;
    let Some((present, text)) = text.split_first() else {
        return Ok(None);
    };
    let ends = ProcessEnds::received(*present, output, descriptors);
    let start = ProcessStart::from_message(text);
    Ok(start.zip(ends).map(|(start, ends)| Request {
        start,
        reports: reports.into(),
        ends,
    }))
}

/// Starts a shell and tells that it has started, or why not.
fn start(request: Request, terms: &ProcessTerms) -> Option<Shell> {
    let Request {
        start,
        mut reports,
        ends,
    } = request;
    let started = match start {
        ProcessStart::Within(confined) => start_within(*confined, &ends, terms),
        ProcessStart::Outside(command) => start_outside(&command, &ends, terms),
    };
    let shell = started.and_then(|child| {
        let pid = Pid::from_raw(child.id().cast_signed());
        let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
        Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))
    });
    match shell {
        Ok((pid, exit)) => {
            let _ = writeln!(reports, "started {pid}");
            Some(Shell {
                pid,
                exit,
                reports: Some(reports),
                ended: false,
            })
        }
        Err(error) => {
            let _ = writeln!(reports, "failed {error}");
            None
        }
    }
}

/// Starts a process that nothing holds.
fn start_outside(
    process: &OutsideProcess,
    ends: &ProcessEnds,
    terms: &ProcessTerms,
) -> io::Result<Child> {
    let prepare = |sh: &mut Command| {
        process.prepare(sh, terms.door.as_deref());
        sh.env(HOST_MARK, &terms.host);
        ends.connect(sh)
    };
    let spawn = |mut sh: Command| sh.spawn();
    match process.program {
        OutsideProgram::Shell(_) => spawn_detached(prepare, spawn),
        OutsideProgram::Program(_) => spawn_grouped(prepare, spawn),
    }
}

/// Starts a shell in a sandbox. The launcher is this program.
fn start_within(
    confined: ConfinedJob,
    ends: &ProcessEnds,
    terms: &ProcessTerms,
) -> io::Result<Child> {
    let ConfinedJob { mut plan, mut job } = confined;
    // Without it, what it would hold is found by its mark and by descent.
    let door = terms.door.as_deref().filter(|door| door.exists());
    // The kernel counts the processes of other users by itself.
    let limit = plan.processes().filter(|_| geteuid().is_root());
    let counted = limit.and_then(|limit| {
        let directory = door.and_then(Path::parent);
        cgroup::limit(directory, &cgroup::name(&terms.host), limit)
    });
    counted.into_iter().for_each(|door| plan.enter(door));
    door.map(Path::to_owned)
        .into_iter()
        .for_each(|door| plan.enter(door));
    job.environment
        .push((HOST_MARK.into(), terms.host.as_str().into()));
    let mut launcher = Launcher::this_program().command_with(&plan, job, ends.of_job())?;
    ends.connect_output(&mut launcher)?;
    launcher.spawn()
}

/// Reaps adopted processes that have ended.
fn reap_adopted(shells: &[Shell]) {
    for child in children() {
        if !shells.iter().any(|shell| shell.pid == child) {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            let _ = waitid(WaitId::Pid(child), options);
        }
    }
}

/// Returns the children of this process, as far as the kernel lists them.
pub(crate) fn children() -> Vec<Pid> {
    // Each thread has its own.
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let listed =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |listed: String| -> Vec<Pid> {
        let pids = listed.split_ascii_whitespace();
        pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            .collect()
    };
    listed.flat_map(pids).collect()
}
