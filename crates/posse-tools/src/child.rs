//! Runs a program to its end, reads its output, and ends it if it takes too long.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// Time for cleaning up after it was told to end.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Maximum size of its output.
pub(crate) const MOST_OUTPUT: usize = 256 << 20;
/// Size of its error output that is kept.
const MOST_COMPLAINTS: usize = 64 << 10;
/// Number of bytes read before the clock is checked again: more than any pipe holds.
const AT_A_TIME: usize = 1 << 20;

/// The output of a program that has ended.
pub(crate) struct Heard {
    /// On standard output.
    pub(crate) printed: Vec<u8>,
    /// On standard error.
    pub(crate) said: Vec<u8>,
    pub(crate) status: ExitStatus,
}

/// Why a program did not run to its end.
#[derive(Debug)]
pub(crate) enum Unheard {
    /// The program does not exist.
    Missing,
    /// It could not be started or read.
    Io(io::Error),
    /// It took too long, and was ended.
    Late(Duration),
    /// It printed too much.
    TooMuch,
}

impl From<io::Error> for Unheard {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs a program with optional input.
pub(crate) fn run(
    mut command: Command,
    input: Option<&[u8]>,
    limit: Duration,
) -> Result<Heard, Unheard> {
    prepare(&mut command, input)?;
    run_prepared(&mut command, limit, MOST_OUTPUT + 1)
}

/// Gives a program its input and a group of its own: Ctrl-C in the terminal is for posse to
/// handle, and the processes that it starts can be ended together with it.
pub(crate) fn prepare(command: &mut Command, input: Option<&[u8]>) -> io::Result<()> {
    let input = match input {
        Some(input) => Stdio::from(in_memory(input)?),
        None => Stdio::null(),
    };
    command.stdin(input).process_group(0);
    Ok(())
}

/// Runs a program that has its input and leads a group, or will, and keeps the first `most` bytes
/// of its output.
pub(crate) fn run_prepared(
    command: &mut Command,
    limit: Duration,
    most: usize,
) -> Result<Heard, Unheard> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unheard::Missing,
        _ => Unheard::Io(error),
    })?;
    Running::new(child, limit)?.finish(most)
}

/// Returns the input as a file, so that it need not be written while the output is read.
fn in_memory(input: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("posse-input", MemfdFlags::CLOEXEC)?);
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

/// A running program, which is ended when this is dropped.
struct Running {
    child: Child,
    group: Pid,
    /// A handle that becomes readable when it ends.
    exit: OwnedFd,
    ended: bool,
    limit: Duration,
}

impl Running {
    fn new(mut child: Child, limit: Duration) -> io::Result<Self> {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let handle = group
            .ok_or(Errno::SRCH)
            .and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
        let (group, exit) = match handle {
            Ok(handle) => handle,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error.into());
            }
        };
        let running = Self {
            child,
            group,
            exit,
            ended: false,
            limit,
        };
        for pipe in running.pipes() {
            // Non-blocking: a read must return when the pipe is empty, to look at the other one.
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(running)
    }

    fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let output = self.child.stdout.as_ref().map(AsFd::as_fd);
        output
            .into_iter()
            .chain(self.child.stderr.as_ref().map(AsFd::as_fd))
    }

    /// Reads its output until it ends, and keeps the first `most` bytes.
    fn finish(mut self, most: usize) -> Result<Heard, Unheard> {
        let until = Instant::now() + self.limit;
        let (mut printed, mut said) = (Vec::new(), Vec::new());
        loop {
            let over = self.wait(until)?;
            // Processes it has left running may keep the pipes open; they are not waited for.
            self.hear(&mut printed, most, &mut said)?;
            if printed.len() > MOST_OUTPUT {
                return Err(Unheard::TooMuch);
            }
            if over {
                break;
            }
            if Instant::now() >= until {
                return Err(Unheard::Late(self.limit));
            }
        }
        let status = self.child.wait()?;
        self.ended = true;
        Ok(Heard {
            printed,
            said,
            status,
        })
    }

    /// Waits for its end or for output, at most until `until`. Returns true if it has ended.
    fn wait(&self, until: Instant) -> io::Result<bool> {
        let mut polled = vec![PollFd::new(&self.exit, PollFlags::IN)];
        polled.extend(
            self.pipes()
                .map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)),
        );
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut polled, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(!polled[0].revents().is_empty()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is in its pipes.
    fn hear(&mut self, printed: &mut Vec<u8>, most: usize, said: &mut Vec<u8>) -> io::Result<()> {
        if drain(self.child.stdout.as_mut(), printed, most)? {
            self.child.stdout = None;
        }
        if drain(self.child.stderr.as_mut(), said, MOST_COMPLAINTS)? {
            self.child.stderr = None;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // First a polite signal, so that git can remove its lock files. Nobody reads its output
        // any more, and a full pipe would keep it from ending.
        (self.child.stdout, self.child.stderr) = (None, None);
        let _ = kill_process_group(self.group, Signal::TERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !self.wait(until).unwrap_or(true) {}
        let _ = kill_process_group(self.group, Signal::KILL);
        // One that was to lead a group may not have come to that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what is there, but not endlessly, and keeps at most `most` bytes in all. Returns true at
/// the end of the pipe.
fn drain(pipe: Option<&mut impl Read>, kept: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let Some(pipe) = pipe else { return Ok(false) };
    let mut buffer = [0; 16 << 10];
    let mut taken = 0;
    while taken < AT_A_TIME {
        match pipe.read(&mut buffer) {
            Ok(0) => return Ok(true),
            Ok(read) => {
                taken += read;
                kept.extend_from_slice(&buffer[..read.min(most.saturating_sub(kept.len()))]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
