//! The guardian: a small process beside posse that waits for posse's end, however that comes, and
//! ends what posse has left running. It is started with the first command, in a session of its own,
//! and knows posse by a pipe that only posse holds open: when it closes, posse is gone.

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

/// How long those who were killed may take before it is looked again, and how often that is.
const KILL_WAIT: Duration = Duration::from_millis(100);
const ROUNDS: usize = 18;
/// How often nothing must be found. Who is just becoming another program carries no mark for a
/// moment.
const QUIET: usize = 2;
/// Starts a program apart from posse: no child of its, and deaf to what terminals and others say.
const APART: &str = r#"trap "" HUP INT QUIT TERM; exec 3<&0; "$@" <&3 3<&- &"#;

/// Sees to it that nothing outlives posse. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Watchdog(Arc<WatchdogProgram>);

#[derive(Debug)]
struct WatchdogProgram {
    program: PathBuf,
    arguments: Vec<OsString>,
    post: Mutex<Option<Arc<Post>>>,
}

/// What is guarded, and the guardian's knowing that somebody is there.
#[derive(Debug)]
pub(crate) struct Post {
    /// What stands in the environment of all that is guarded.
    pub(crate) id: Uuid,
    /// Where it is put, if there is such a place.
    pub(crate) cgroup: Option<PathBuf>,
    _alive: PipeWriter,
}

impl Watchdog {
    /// One that is this program with these arguments. Some more are added: see [`stand_guard`],
    /// which it must call. Nothing is started before the first command is.
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

    /// Starts it, unless it is there.
    pub(crate) fn post(&self) -> io::Result<Arc<Post>> {
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
        // Only now, when there is somebody who removes it.
        let cgroup = cgroup.filter(|cgroup| cgroup::make(cgroup));
        Ok(Arc::clone(post.insert(Arc::new(Post {
            id,
            cgroup,
            _alive: alive,
        }))))
    }

    fn start(&self, id: Uuid, cgroup: Option<&Path>) -> io::Result<PipeWriter> {
        let (ended, alive) = io::pipe()?;
        // The shell is gone at once; whoever starts processes next reaps it.
        spawn_detached(|command| {
            command
                .args(["-c", APART, "sh"])
                .arg(&self.0.program)
                .args(&self.0.arguments);
            command
                .arg(id.to_string())
                .args(cgroup)
                .arg(getpgrp().as_raw_nonzero().to_string());
            // It keeps nothing open that is somebody else's, and is no part of a call that posse
            // may be.
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

/// Waits until the other end of `alive` is closed, and ends whatever carries the mark `id` or is in
/// the cgroup. `arguments` are those that [`Watchdog`] adds: the mark, the cgroup if there is one,
/// and the group that posse itself is in; none if they are something else.
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
            // Who is gone already needs no signal.
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

/// Returns all that is to be ended. In the group `posses` are those who have started posse, and for
/// a moment who was just started by it.
fn find(mark: &[u8], cgroup: Option<&Path>, posses: i32) -> Vec<OwnedFd> {
    if let Some(cgroup) = cgroup {
        // Who cannot be reached so is found by its mark.
        let _ = cgroup::kill(cgroup);
    }
    let inside = cgroup.map(cgroup::members).unwrap_or_default();
    let table = ProcessTable::since(ScanRequest::now());
    // The groups of commands have nobody else in them.
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

/// Until all have ended, but not for long.
fn wait(handles: &[OwnedFd]) {
    let until = Instant::now() + KILL_WAIT;
    for handle in handles {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: 0,
            tv_nsec: left.subsec_nanos().into(),
        };
        // If it fails, it is looked again all the sooner.
        let _ = poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&left));
    }
}
