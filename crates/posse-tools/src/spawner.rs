//! Commands are started by the watchdog, on posse's request. It adopts what they leave behind, in
//! whatever session and with whatever environment: everything that an agent's command has started
//! is below it, and nothing else is.

pub(crate) mod serve;

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};

use posse_sandbox::{JobEnds, handover};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;

use crate::process_start::ProcessStart;

/// The connection to a watchdog that starts commands.
#[derive(Debug)]
pub(crate) struct Spawner(OwnedFd);

impl Spawner {
    /// Returns a connection, and the watchdog's end of it.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = handover::pair()?;
        Ok((Self(ours), theirs))
    }

    /// Has a shell started that prints to `output`. The error is a broken pipe if the watchdog is
    /// gone and was not told to start it, and an aborted connection if it may have started it. If
    /// this is dropped before it is done, the shell is killed.
    pub(crate) async fn start(
        &self,
        start: &ProcessStart,
        ends: ProcessEnds,
    ) -> io::Result<SpawnedProcess> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut reports = BufReader::new(UnixStream::from_std(ours)?);
        self.send(&start.to_message()?, theirs.into(), ends)?;
        let mut line = String::new();
        reports.read_line(&mut line).await?;
        match line.trim_end().split_once(' ') {
            Some(("started", pid)) => {
                let pid = pid.parse().ok().and_then(Pid::from_raw);
                let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
                Ok(SpawnedProcess { pid, reports })
            }
            Some(("failed", why)) => Err(io::Error::other(why.to_owned())),
            _ => Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the guard process ended while it started the command, which may have run",
            )),
        }
    }

    /// Sends a request. It waits only if the watchdog has many to handle, each for a millisecond.
    fn send(&self, message: &[u8], reports: OwnedFd, ends: ProcessEnds) -> io::Result<()> {
        // A file, since a packet can be too small for an environment and a plan.
        let mut file = File::from(memfd_create("posse-command", MemfdFlags::CLOEXEC)?);
        file.write_all(&[ends.present()])?;
        file.write_all(message)?;
        file.rewind()?;
        let first = [&reports, &ends.output].map(|end| end.as_fd());
        let more = [&ends.input, &ends.errors, &ends.proxy]
            .into_iter()
            .flatten();
        let descriptors = first.into_iter().chain([file.as_fd()]);
        let descriptors: Vec<_> = descriptors.chain(more.map(|end| end.as_fd())).collect();
        handover::send(&self.0, &descriptors).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => gone(),
            _ => error,
        })
    }
}

/// What a process is connected with.
#[derive(Debug)]
pub(crate) struct ProcessEnds {
    /// What it reads; nothing if there is none.
    pub(crate) input: Option<OwnedFd>,
    /// Where it prints.
    pub(crate) output: OwnedFd,
    /// Where its errors go, if not to its output.
    pub(crate) errors: Option<OwnedFd>,
    /// Where its proxy is told what to accept on.
    pub(crate) proxy: Option<OwnedFd>,
}

/// Bits that say which of the ends there are.
const INPUT: u8 = 1;
const ERRORS: u8 = 2;
const PROXY: u8 = 4;

impl ProcessEnds {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let clone = |end: &Option<OwnedFd>| end.as_ref().map(OwnedFd::try_clone).transpose();
        Ok(Self {
            input: clone(&self.input)?,
            output: self.output.try_clone()?,
            errors: clone(&self.errors)?,
            proxy: clone(&self.proxy)?,
        })
    }

    /// Returns the ends among descriptors, of which these bits say which there are.
    fn received(
        present: u8,
        output: OwnedFd,
        mut others: impl Iterator<Item = OwnedFd>,
    ) -> Option<Self> {
        let mut next = |bit: u8| match present & bit {
            0 => Some(None),
            _ => others.next().map(Some),
        };
        Some(Self {
            input: next(INPUT)?,
            output,
            errors: next(ERRORS)?,
            proxy: next(PROXY)?,
        })
    }

    fn present(&self) -> u8 {
        let bit = |end: &Option<OwnedFd>, bit: u8| if end.is_some() { bit } else { 0 };
        bit(&self.input, INPUT) | bit(&self.errors, ERRORS) | bit(&self.proxy, PROXY)
    }

    /// Connects a command with all but the proxy.
    pub(crate) fn connect(&self, command: &mut Command) -> io::Result<()> {
        if let Some(input) = &self.input {
            command.stdin(input.try_clone()?);
        }
        self.connect_output(command)
    }

    /// Connects what a command prints.
    pub(crate) fn connect_output(&self, command: &mut Command) -> io::Result<()> {
        let errors = self.errors.as_ref().unwrap_or(&self.output);
        command
            .stdout(self.output.try_clone()?)
            .stderr(errors.try_clone()?);
        Ok(())
    }

    /// Returns what a launcher needs for its job.
    pub(crate) fn of_job(&self) -> JobEnds<'_> {
        JobEnds {
            input: self.input.as_ref().map(|end| end.as_fd()),
            proxy: self.proxy.as_ref().map(|end| end.as_fd()),
        }
    }
}

#[cfg(test)]
impl From<io::PipeWriter> for ProcessEnds {
    fn from(output: io::PipeWriter) -> Self {
        Self {
            input: None,
            output: output.into(),
            errors: None,
            proxy: None,
        }
    }
}

/// Returns the error for a watchdog that does not answer any more.
fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the guard process has ended")
}

/// A shell that the watchdog has started. It is killed when this is dropped before it ends, and
/// its number is not given to another process until this is dropped.
pub(crate) struct SpawnedProcess {
    pub(crate) pid: Pid,
    reports: BufReader<UnixStream>,
}

impl SpawnedProcess {
    /// Waits for its end. Returns none if the watchdog is gone.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        let mut line = String::new();
        self.reports.read_line(&mut line).await.ok()?;
        let status = line.trim_end().strip_prefix("ended ")?;
        status.parse().ok().map(ExitStatus::from_raw)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    use std::path::Path;

    use super::*;
    use crate::process_start::{OutsideProcess, OutsideProgram};

    /// A connection to a thread that does the watchdog's work.
    pub(crate) fn spawner() -> Spawner {
        let (spawner, theirs) = Spawner::pair().unwrap();
        let terms = serve::ProcessTerms {
            host: "host".into(),
            door: None,
        };
        std::thread::spawn(move || serve::serve(theirs.as_fd(), &terms));
        spawner
    }

    fn command(text: &str) -> ProcessStart {
        ProcessStart::Outside(shell_command(text))
    }

    fn shell_command(text: &str) -> OutsideProcess {
        OutsideProcess {
            program: OutsideProgram::Shell(text.into()),
            cwd: "/".into(),
            marker: "mark".into(),
            without: Vec::new(),
            variables: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_shell_is_started_elsewhere_and_its_end_is_told() {
        let spawner = spawner();
        for (text, printed, code, signal) in [
            ("pwd; exit 3", "/\n", Some(3), None),
            (
                "echo $POSSE_CALL $POSSE_HOST >&2",
                "mark host\n",
                Some(0),
                None,
            ),
            ("kill -9 $$", "", None, Some(9)),
            ("kill -15 $$", "", None, Some(15)),
        ] {
            let (mut output, theirs) = io::pipe().unwrap();
            let mut shell = spawner.start(&command(text), theirs.into()).await.unwrap();
            let status = shell.ended().await.unwrap();
            assert_eq!((status.code(), status.signal()), (code, signal), "{text}");
            let mut text = String::new();
            output.read_to_string(&mut text).unwrap();
            assert_eq!(text, printed);
        }
        let nowhere = ProcessStart::Outside(OutsideProcess {
            cwd: "/nowhere".into(),
            ..shell_command("true")
        });
        let failed = spawner.start(&nowhere, io::pipe().unwrap().1.into()).await;
        assert!(failed.err().unwrap().to_string().contains("No such file"));
    }

    #[tokio::test]
    async fn a_shell_that_nobody_follows_is_killed_and_reaped() {
        let spawner = spawner();
        let (mut output, theirs) = io::pipe().unwrap();
        let text = "trap '' TERM; echo up; sleep 1000; sleep 1000";
        let shell = spawner.start(&command(text), theirs.into()).await.unwrap();
        let up = &mut [0; 3];
        output.read_exact(up).unwrap();
        let process = format!("/proc/{}", shell.pid);
        assert!(Path::new(&process).exists());
        drop(shell);
        // The other end is closed by its last process.
        assert_eq!(output.read_to_end(&mut Vec::new()).unwrap(), 0);
        while Path::new(&process).exists() {
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn a_watchdog_that_is_gone_is_noticed() {
        let (spawner, theirs) = Spawner::pair().unwrap();
        drop(theirs);
        let failed = spawner
            .start(&command("true"), io::pipe().unwrap().1.into())
            .await;
        assert_eq!(failed.err().unwrap().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_watchdog_that_dies_over_a_command_may_have_started_it() {
        let (spawner, theirs) = Spawner::pair().unwrap();
        let dies = std::thread::spawn(move || {
            rustix::net::recv(&theirs, &mut [0_u8; 1][..], rustix::net::RecvFlags::empty())
        });
        let failed = spawner
            .start(&command("true"), io::pipe().unwrap().1.into())
            .await;
        dies.join().unwrap().unwrap();
        let failed = failed.err().unwrap();
        assert_eq!(failed.kind(), io::ErrorKind::ConnectionAborted, "{failed}");
    }
}
