//! Running a command in a shell, from its start until nothing of it is left.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use posse_port::clock::Clock;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use crate::capture::Sink;
use crate::process::{StartedProcess, Starter};
use crate::process_start::ProcessStart;
use crate::processes::{AFTERMATH, gone, within};
use crate::spawner::ProcessEnds;

/// How much is read after the end. A pipe holds less; more comes from who could not be ended.
const MOST_LEFT: usize = 4 << 20;

/// A running shell. All that it has started is killed when it is dropped.
pub(crate) struct RunningShell {
    process: StartedProcess,
    output: pipe::Receiver,
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
    /// Starts a command. Its output and errors come together; `proxy` is where its proxy is told
    /// what to accept on.
    pub(crate) async fn start(
        start: ProcessStart,
        marker: String,
        starter: Starter,
        proxy: Option<OwnedFd>,
    ) -> io::Result<Self> {
        let (output, printed) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(output.into())?;
        let ends = ProcessEnds {
            input: None,
            output: printed.into(),
            errors: None,
            proxy,
        };
        let process = StartedProcess::start(start, marker, starter, ends).await?;
        Ok(Self { process, output })
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
        let family = self.process.family();
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
        let status = self.process.reap(clock).await?;
        drain(self.output, sink).await?;
        let how = match how {
            How::Exited(_) => How::Exited(status),
            how => how,
        };
        Ok(Ending { how, ended })
    }
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
