//! The launcher: a process that confines itself as a plan says, and then becomes or starts the
//! command. Each stage is the posse binary again, so that nothing happens between fork and exec.
//!
//! Stage one makes namespaces and mounts, stays outside and ends as the command does. Stage two is
//! the first process inside: it gives up every right, starts the command and reaps its orphans.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use nix::sched::{CloneFlags, unshare};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with};
use rustix::process::{
    Pid, Signal, getegid, geteuid, getpid, getppid, kill_process, set_parent_process_death_signal,
    setsid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities,
    set_no_new_privs,
};

use crate::error::{LaunchError, Step as _};
use crate::fence::{self, HandlesTcp};
use crate::filter::{self, Sockets};
use crate::handover;
use crate::inside;
use crate::job::{CONFINE, ORDERS, Orders, PROXY_PORT};
use crate::mounts;
use crate::plan::Plan;
use crate::rights;
use crate::trial;

/// The word that makes a launcher the first process inside.
pub(crate) const INSIDE: &str = "inside";
/// Exit code of a launcher that ran nothing.
pub(crate) const REFUSED: u8 = 125;

/// Runs as a launcher if the arguments of the program ask for it, and returns its exit code. The
/// program must call this before it does anything else. Returns none for a person who types the
/// word: only `Launcher::command` can give orders.
pub fn run_launcher(words: &[OsString]) -> Option<ExitCode> {
    let ended = match words {
        [_, confine] if confine == CONFINE => outside(handed_over()?),
        [_, confine, inside] if confine == CONFINE && inside == INSIDE && is_first() => {
            inside::run()
        }
        _ => return None,
    };
    Some(ended.unwrap_or_else(|error| {
        // Nobody reads it if this fails.
        let _ = writeln!(io::stderr(), "posse: no sandbox for this command: {error}");
        ExitCode::from(REFUSED)
    }))
}

/// What a launcher is given.
struct HandedOver {
    orders: File,
    /// The job's input if it has one, and where to send what the proxy accepts on if there is one.
    ends: Vec<OwnedFd>,
}

/// Takes what the connection that is its input holds. None if that is not one of `Launcher`'s.
fn handed_over() -> Option<HandedOver> {
    let input = fs::read_link("/proc/self/fd/0").ok()?;
    if !input.to_string_lossy().starts_with("socket:") {
        return None;
    }
    let mut descriptors = handover::receive(io::stdin()).ok()?.into_iter();
    let orders = File::from(descriptors.next()?);
    let name = fs::read_link(format!("/proc/self/fd/{}", orders.as_raw_fd())).ok()?;
    let expected = format!("/memfd:{ORDERS}");
    let is_ours = name.to_string_lossy().starts_with(&expected);
    is_ours.then(|| HandedOver {
        orders,
        ends: descriptors.collect(),
    })
}

fn is_first() -> bool {
    getpid() == Pid::INIT
}

/// Stage one.
fn outside(given: HandedOver) -> Result<ExitCode, LaunchError> {
    let mut orders = Vec::new();
    let HandedOver {
        orders: mut file,
        ends,
    } = given;
    file.read_to_end(&mut orders).step("read the orders")?;
    drop(file);
    close_inherited(&ends).step("close files")?;
    let read = Orders::from_bytes(&orders).step("read the orders")?;
    let mut ends = ends.into_iter();
    let input = match read.has_input {
        true => ends.next(),
        false => None,
    };
    take_input(input)?;
    // Fails for a process that leads a group; then a terminal stays, which it must not.
    setsid().step("begin a session")?;
    // Whoever ends a command asks each of its processes first. This one ends with them.
    rights::hold_signals_back()?;
    die_with(&read)?;
    for door in &read.plan.cgroups {
        fs::write(door, "0").step_at("enter the cgroup", door)?;
    }
    if !read.plan.tier().has_mounts() {
        return fenced(&read);
    }
    mounts::prepare_temporary(&read.plan)?;
    make_namespaces(&read.plan)?;
    if let Some(proxy) = ends.next() {
        listen_for(proxy).step("listen for the proxy")?;
    }
    // A change of user clears it.
    die_with(&read)?;
    mounts::make(&read.plan)?;
    let status = start_inside(&orders)?;
    Ok(end_as(status))
}

/// Makes this the input of this process, which is nothing if there is none.
fn take_input(input: Option<OwnedFd>) -> Result<(), LaunchError> {
    let input = match input {
        Some(input) => input,
        None => File::open("/dev/null").step("open /dev/null")?.into(),
    };
    rustix::stdio::dup2_stdin(&input).step("replace the input")
}

/// Closes what posse's parent has left open for its children, but for these.
fn close_inherited(kept: &[OwnedFd]) -> io::Result<()> {
    let is_kept = |descriptor: i32| kept.iter().any(|kept| kept.as_raw_fd() == descriptor);
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2 && !is_kept(*descriptor))
        .collect();
    for descriptor in open {
        // The list itself was open, too, and is not any more.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

/// Has the kernel kill this process when its parent ends.
fn die_with(orders: &Orders) -> Result<(), LaunchError> {
    set_parent_process_death_signal(Some(Signal::KILL)).step("follow the parent")?;
    let parent = getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
    if parent != Some(orders.parent) {
        return Err(LaunchError::new("follow the parent", "it has ended"));
    }
    Ok(())
}

/// Without namespaces: becomes the command behind the fence.
fn fenced(orders: &Orders) -> Result<ExitCode, LaunchError> {
    let plan = &orders.plan;
    rights::limit(plan)?;
    rights::drop_capabilities()?;
    let temporary = Some(plan.temporary.as_path()).filter(|path| path.exists());
    let roots = plan.roots.iter().map(|root| root.as_path());
    let roots = roots.chain(temporary);
    set_no_new_privs(true).step("give up new rights")?;
    fence::apply(plan.support.landlock, roots, HandlesTcp::Yes).step("fence")?;
    filter::apply(Sockets::None).step("filter system calls")?;
    match &orders.job {
        None => trial::check_fence(),
        Some(job) => {
            rights::let_signals_through()?;
            let error = rights::command(job).stdin(Stdio::inherit()).exec();
            Err(error).step_at("run", Path::new(&job.program))
        }
    }
}

fn make_namespaces(plan: &Plan) -> Result<(), LaunchError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if !plan.shares_network() {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).step("make namespaces")?;
    fs::write("/proc/self/setgroups", "deny").step("map users")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).step("map users")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).step("map groups")?;
    if !plan.shares_network() {
        // Without it programs cannot talk to themselves, which breaks tests but lets nothing out.
        let _ = bring_loopback_up();
    }
    // An ordinary user loses all capabilities by starting a program, but for these.
    let kept = CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP;
    let all = rustix::thread::capabilities(None).step("look at capabilities")?;
    let sets = CapabilitySets {
        inheritable: kept,
        ..all
    };
    set_capabilities(None, sets).step("pass capabilities on")?;
    for one in kept {
        configure_capability_in_ambient_set(one, true).step("pass capabilities on")?;
    }
    Ok(())
}

/// Listens where programs inside look for their proxy, and hands that to who accepts.
fn listen_for(proxy: OwnedFd) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    handover::send(proxy, &[listener.as_fd()])
}

/// Asks the kernel to bring up the interface that every network namespace has.
fn bring_loopback_up() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // A header of 16 bytes (length, type RTM_NEWLINK, flag NLM_F_REQUEST, number, sender), and an
    // ifinfomsg (family, type, index 1, flag IFF_UP, and which flags are meant).
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend(16_u16.to_ne_bytes());
    message.extend(1_u16.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([0; 4]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes());
    send(&socket, &message, SendFlags::empty())?;
    Ok(())
}

/// Starts stage two and returns the raw status that the command ended with.
#[expect(
    clippy::disallowed_methods,
    reason = "the second stage of the launcher"
)]
fn start_inside(orders: &[u8]) -> Result<i32, LaunchError> {
    let (mut ours, theirs) = UnixStream::pair().step("connect")?;
    let mut stage = Command::new("/proc/self/exe");
    stage
        .args([CONFINE, INSIDE])
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(theirs));
    let mut stage = {
        let child = stage.spawn().step("start inside")?;
        // Its end of the connection must be held by it alone.
        drop(stage);
        child
    };
    // The job's input goes first. Nobody else may hold it, so that who writes to it notices when the
    // job closes it.
    handover::send(&ours, &[io::stdin().as_fd()]).step("send the input")?;
    take_input(None)?;
    let sent = ours.write_all(orders);
    sent.and_then(|()| ours.shutdown(std::net::Shutdown::Write))
        .step("send the orders")?;
    let mut status = [0; 4];
    let told = ours.read_exact(&mut status);
    let ended = stage.wait().step("wait")?;
    match told {
        Ok(()) => Ok(i32::from_ne_bytes(status)),
        // It has said why, or was killed with everything inside.
        Err(_) => {
            use std::os::unix::process::ExitStatusExt as _;
            Ok(ended.into_raw())
        }
    }
}

/// Ends this process as the command has ended.
fn end_as(status: i32) -> ExitCode {
    let signal = status & 0x7f;
    if signal == 0 {
        return ExitCode::from(((status >> 8) & 0xff) as u8);
    }
    // It leaves no image of its memory, which would be the launcher's.
    let _ = rights::leave_no_image();
    let _ = rights::let_signals_through();
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(getpid(), signal);
    }
    ExitCode::from((128 + signal) as u8)
}
