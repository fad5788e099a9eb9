//! Stage two of the launcher: the first process inside.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, wait,
};
use rustix::thread::set_no_new_privs;

use crate::error::{LaunchError, Step as _};
use crate::fence::{self, HandlesTcp};
use crate::filter::{self, Sockets};
use crate::handover;
use crate::job::{Job, Orders};
use crate::mounts;
use crate::plan::{MountKind, Plan};
use crate::rights::{command, drop_capabilities, let_signals_through, limit};
use crate::trial;

/// How long what the job leaves behind may take to end by itself, `>(tee log)` for one.
const AFTERMATH: Duration = Duration::from_millis(100);
/// How long to wait before looking whether it has.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// Places that every command may write to.
const OWN: [&str; 2] = ["/dev/shm", "/dev/pts"];

/// Confines this process and runs the job.
pub(crate) fn run() -> Result<ExitCode, LaunchError> {
    set_parent_process_death_signal(Some(Signal::KILL)).step("follow the launcher")?;
    let connection = std::io::stdin().as_fd().try_clone_to_owned();
    let mut connection = UnixStream::from(connection.step("take the connection")?);
    let input = handover::receive(&connection).step("take the input")?;
    let mut orders = Vec::new();
    connection
        .read_to_end(&mut orders)
        .step("read the orders")?;
    let orders = Orders::from_bytes(&orders).step("read the orders")?;
    // It could have ended before this process began to follow it.
    if !is_followed(&connection) {
        return Err(LaunchError::new("follow the launcher", "it has ended"));
    }
    setsid().step("begin a session")?;
    mounts::make_proc()?;
    confine(&orders.plan)?;
    match &orders.job {
        None => trial::check_inside(),
        Some(job) => {
            let status = run_job(job, input.into_iter().next())?;
            tell_left(settle());
            // The launcher is told what an exit code cannot say.
            connection
                .write_all(&status.to_ne_bytes())
                .step("report the end")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn confine(plan: &Plan) -> Result<(), LaunchError> {
    limit(plan)?;
    drop_capabilities()?;
    set_no_new_privs(true).step("give up new rights")?;
    // What it read of the plan is not for the command.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("hide memory")?;
    if plan.tier().has_fence() {
        fence::apply(plan.support.landlock, roots(plan), HandlesTcp::No).step("fence")?;
    }
    let sockets = match plan.shares_network() {
        true => Sockets::Network,
        false => Sockets::Inner,
    };
    filter::apply(sockets).step("filter system calls")
}

/// Returns where the fence lets programs write. Mounts keep what is beneath and must stay.
fn roots(plan: &Plan) -> impl Iterator<Item = &Path> {
    let mounted = plan.mounts.iter();
    let mounted = mounted.filter(|mount| matches!(mount.kind, MountKind::Write | MountKind::Copy));
    let everything = plan.all_writable.then_some(Path::new("/"));
    mounted
        .map(|mount| mount.path.as_path())
        .chain(OWN.map(Path::new))
        .chain(everything)
        .filter(|path| path.exists())
}

/// Starts the job with its input and waits for its end. Returns the raw status that it ended with.
fn run_job(job: &Job, input: Option<OwnedFd>) -> Result<i32, LaunchError> {
    let mut command = command(job);
    if let Some(input) = input {
        command.stdin(input);
    }
    // A signal to its group does not reach this process.
    command.process_group(0);
    let_signals_through()?;
    let started = command.spawn().step_at("run", Path::new(&job.program))?;
    drop(command);
    let main = Pid::from_raw(started.id().cast_signed());
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if Some(ended) == main => return Ok(status.as_raw()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).step("wait"),
        }
    }
}

/// Gives what the job has left behind a moment to end by itself, and returns how many processes
/// are still there. They end with this one.
fn settle() -> usize {
    let until = Instant::now() + AFTERMATH;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            // Everything inside descends from this process.
            Err(_) => return 0,
            Ok(None) if Instant::now() < until => {
                let _ = poll(&mut [], Some(&LOOK_AGAIN));
            }
            Ok(None) => return others(),
        }
    }
}

/// Returns how many processes there are inside beside this one.
fn others() -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id()).count()
}

fn tell_left(count: usize) {
    let what = match count {
        0 => return,
        1 => "1 process was".to_owned(),
        count => format!("{count} processes were"),
    };
    // Nobody reads it if this fails.
    let _ = writeln!(
        std::io::stderr(),
        "({what} still running when the shell ended; now ended, too)"
    );
}

/// Returns true if the other end of the connection to stage one is open.
fn is_followed(connection: &UnixStream) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut polled = [PollFd::from_borrowed_fd(
        connection.as_fd(),
        PollFlags::empty(),
    )];
    let open = poll(&mut polled, Some(&now));
    open.is_ok()
        && !polled[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR)
}
