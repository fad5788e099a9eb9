//! A program that reads one input, replies and ends.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use posse_port::hooks::{HookCall, HookFailure, HookReturn};
use posse_port::process::{Process, ProcessEnd, ProcessError, ProcessRequest, Processes as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{MOST_BYTES, failed, over, text};
use crate::bash::{fault_of_status, left_behind};
use crate::processes::{AFTERMATH, within};
use crate::system_processes::SystemProcesses;

/// How much is read at once.
const PIECE: usize = 16 << 10;

/// Runs a program, and sees to it that nothing of it is left.
pub(super) async fn run(
    processes: &SystemProcesses,
    words: &[String],
    call: &HookCall,
) -> HookReturn {
    let mut over = std::pin::pin!(over(call));
    let started = tokio::select! {
        biased;
        failure = &mut over => return failed(failure),
        started = start(processes, words, call) => started,
    };
    let process = match started {
        Ok(process) => process,
        Err(failure) => return failed(failure),
    };
    let Process {
        input,
        output,
        errors,
        mut control,
        ..
    } = process;
    let (mut output, mut errors) = (Printed::of(output), Printed::of(errors));
    let cut = tokio::select! {
        biased;
        failure = &mut over => Some(failure),
        // Once all is written and read, its end is waited for.
        Err(failure) = async {
            tokio::try_join!(write(input, &call.input), output.read(), errors.read())
        } => Some(failure),
        () = control.ended() => None,
    };
    let end = control.end(Duration::ZERO).await;
    // What it has printed is in the pipe now, and nobody is left who could print more.
    let too_long = if cut.is_none() {
        let rest = async { tokio::try_join!(output.read(), errors.read()) };
        let rest = within(&*call.clock, AFTERMATH, rest).await;
        rest.and_then(Result::err)
    } else {
        None
    };
    returned(end, output, errors, cut.or(too_long))
}

/// Starts the program of a call.
pub(super) async fn start(
    processes: &SystemProcesses,
    words: &[String],
    call: &HookCall,
) -> Result<Process, HookFailure> {
    if words.is_empty() {
        return Err(HookFailure::NotRun("it names no program".into()));
    }
    let request = ProcessRequest {
        words: words.iter().map(Into::into).collect(),
        directory: call.directory.clone(),
        marker: call.marker.clone(),
        variables: call.variables.clone(),
        boundary: call.boundary.clone(),
        clock: call.clock.clone(),
    };
    let started = processes.start(request).await;
    started.map_err(|error: ProcessError| HookFailure::NotRun(error.to_string()))
}

/// Writes the input and closes it. A program need not read it.
async fn write(
    mut input: Box<dyn AsyncWrite + Send + Unpin>,
    text: &[u8],
) -> Result<(), HookFailure> {
    // Fails only if the program has closed its end.
    let _ = input.write_all(text).await;
    Ok(())
}

/// Puts together what a program that has ended has said.
fn returned(
    end: ProcessEnd,
    output: Printed,
    errors: Printed,
    cut: Option<HookFailure>,
) -> HookReturn {
    let status = end.status;
    let unknown = || "its exit status is unknown".to_owned();
    let killed = match status {
        Some(status) if status.signal().is_none() => None,
        status => status.map_or_else(|| Some(unknown()), fault_of_status),
    };
    // One that was ended itself is not said to have left anything.
    let left = left_behind("the hook", end.left).filter(|_| cut.is_none());
    let mut errors = text(errors.bytes);
    for note in left.iter().chain(&end.notes) {
        if !errors.is_empty() && !errors.ends_with('\n') {
            errors.push('\n');
        }
        errors.push_str(note);
    }
    HookReturn {
        output: text(output.bytes),
        errors,
        code: status.and_then(|status| status.code()),
        failure: cut.or(killed.map(HookFailure::Killed)),
        took: Duration::ZERO,
    }
}

/// What a program prints, as far as it was read.
struct Printed {
    pipe: Box<dyn AsyncRead + Send + Unpin>,
    bytes: Vec<u8>,
}

impl Printed {
    fn of(pipe: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self {
            pipe,
            bytes: Vec::new(),
        }
    }

    /// Reads until its end. May be dropped meanwhile, and called again.
    async fn read(&mut self) -> Result<(), HookFailure> {
        loop {
            self.bytes.reserve(PIECE);
            // A pipe that cannot be read is as good as one that has ended.
            if !matches!(self.pipe.read_buf(&mut self.bytes).await, Ok(1..)) {
                return Ok(());
            }
            if self.bytes.len() > MOST_BYTES {
                return Err(HookFailure::TooLong(MOST_BYTES));
            }
        }
    }
}
