//! A server that is a program: its start, its errors, its end.

use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::Clock;
use posse_port::process::{Process, ProcessControl, ProcessError, ProcessRequest, Processes};
use posse_port::servers::ServerPlace;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use uuid::Uuid;

use super::stdio::{LineTransport, Loss};
use super::tail::LogTail;
use crate::bash::fault_of_status;
use crate::processes::{AFTERMATH, within};

/// How long it may take to end once its input is closed.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How much of its errors is read at once.
const PIECE: usize = 4 << 10;

/// What a server is started with.
pub(super) struct ProgramWords<'a> {
    pub(super) words: &'a [String],
    pub(super) variables: &'a [(String, String)],
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// There is none.
    #[error("it names no program")]
    NoProgram,
    /// The system has refused it.
    #[error(transparent)]
    Refused(#[from] ProcessError),
}

/// A program that runs. All that it has started is killed when this is dropped.
pub(super) struct Program {
    control: Box<dyn ProcessControl>,
    /// None once it has closed them.
    errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
    loss: Loss,
    log: Arc<LogTail>,
    clock: Arc<dyn Clock>,
}

impl Program {
    /// Starts a program.
    pub(super) async fn start(
        processes: &dyn Processes,
        words: ProgramWords<'_>,
        place: &ServerPlace,
        log: &Arc<LogTail>,
    ) -> Result<(Self, LineTransport), StartError> {
        if words.words.is_empty() {
            return Err(StartError::NoProgram);
        }
        let variables = words.variables.iter();
        let request = ProcessRequest {
            words: words.words.iter().map(Into::into).collect(),
            directory: place.directory.clone(),
            marker: format!("mcp-{}", Uuid::now_v7()),
            variables: variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            boundary: place.boundary.clone(),
            clock: Arc::clone(&place.clock),
        };
        let started = processes.start(request).await;
        let Process {
            input,
            output,
            errors,
            control,
            ..
        } = started?;
        let transport = LineTransport::new(input, output, Arc::clone(log));
        let program = Self {
            control,
            errors: Some(errors),
            loss: transport.loss(),
            log: Arc::clone(log),
            clock: Arc::clone(&place.clock),
        };
        Ok((program, transport))
    }

    /// Waits until nothing comes from it any more, and returns why. Its errors are read meanwhile.
    /// Dropping the future loses nothing.
    pub(super) async fn lost(&mut self) -> &'static str {
        let mut piece = [0; PIECE];
        loop {
            let read = async {
                match &mut self.errors {
                    Some(errors) => errors.read(&mut piece).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                why = self.loss.wait() => return why,
                () = self.control.ended() => {
                    // Its last words may be on the way.
                    let lost = within(&*self.clock, AFTERMATH, self.loss.wait()).await;
                    return lost.unwrap_or("it has ended, and what it has started keeps its output");
                }
                read = read => match read {
                    Ok(length @ 1..) => self.log.add(&piece[..length]),
                    Ok(0) | Err(_) => self.errors = None,
                },
            }
        }
    }

    /// Ends it with all that it has started. Returns why and how it has ended, and the end of its log.
    pub(super) async fn end(self, why: &str, patience: Duration) -> String {
        let end = self.control.end(patience).await;
        if let Some(mut errors) = self.errors {
            let mut rest = Vec::new();
            within(&*self.clock, AFTERMATH, errors.read_to_end(&mut rest)).await;
            self.log.add(&rest);
        }
        let mut told = why.to_owned();
        if let Some(fault) = end.status.and_then(fault_of_status) {
            told.push_str(&format!(" ({fault})"));
        }
        for note in end.notes {
            told.push_str("; ");
            told.push_str(&note);
        }
        with_log(told, &self.log)
    }
}

/// Adds the end of a log.
pub(super) fn with_log(mut told: String, log: &LogTail) -> String {
    let log = log.text();
    if !log.is_empty() {
        told.push_str("; the end of its log:\n");
        told.push_str(&log);
    }
    told
}
