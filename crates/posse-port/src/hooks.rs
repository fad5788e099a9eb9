//! What hooks run: programs, servers, and functions of the program that drives posse.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::clock::Clock;
use crate::process::ProcessBoundary;

/// Runs hooks.
pub trait HookRunner: Send + Sync {
    /// Runs one, and returns what it said. Ends within a second after it was cancelled, and leaves
    /// no process.
    fn run(&self, call: HookCall) -> BoxFuture<'static, HookReturn>;
}

/// A hook that is to be run.
#[derive(Clone)]
pub struct HookCall {
    /// What is run.
    pub target: HookTarget,
    /// What has happened, as a JSON object.
    pub input: Bytes,
    /// Where a program runs.
    pub directory: PathBuf,
    /// Unique for ever: processes carry it, so that they can be found.
    pub marker: String,
    /// Variables of a program, beside posse's own without secrets.
    pub variables: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub limit: Duration,
    /// What holds a program, and which hosts may be reached.
    pub boundary: ProcessBoundary,
    /// Measures the time.
    pub clock: Arc<dyn Clock>,
    /// True if nobody waits for it: it must not hold up those that are waited for.
    pub beside: bool,
    /// Tells it to end.
    pub cancel: CancellationToken,
}

/// What a hook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookTarget {
    /// A program that is started, reads the input and ends.
    Program {
        /// The program and its arguments.
        words: Vec<String>,
    },
    /// A program that stays, and answers each line with a line.
    Persistent {
        /// The program and its arguments.
        words: Vec<String>,
    },
    /// A server that the input is posted to.
    Http {
        /// Its address.
        url: String,
        /// Headers of the request.
        headers: Vec<(String, String)>,
        /// Variables of the environment that headers may name.
        variables: Vec<String>,
    },
    /// A function of the program that drives posse.
    Callback {
        /// Its name there.
        id: String,
        /// The tool call that it is about.
        call: Option<String>,
    },
}

/// What a hook has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookReturn {
    /// What it printed, or the body of a reply.
    pub output: String,
    /// Its errors.
    pub errors: String,
    /// The exit code of a program; 0 for any other hook that has replied.
    pub code: Option<i32>,
    /// Why there is no reply.
    pub failure: Option<HookFailure>,
    /// How long it took.
    pub took: Duration,
}

/// Why a hook has not replied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookFailure {
    /// It could not be started, or reached.
    #[error("{0}")]
    NotRun(String),
    /// Its time was over.
    #[error("it took longer than {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// A signal has ended it.
    #[error("{0}")]
    Killed(String),
    /// It said more than is read.
    #[error("it printed more than {0} bytes")]
    TooLong(usize),
    /// A server refused it.
    #[error("{0}")]
    Refused(String),
    /// It was told to end.
    #[error("it was stopped")]
    Stopped,
}

/// Runs no hooks.
#[derive(Clone, Copy, Debug)]
pub struct NoHooks;

impl HookRunner for NoHooks {
    fn run(&self, _call: HookCall) -> BoxFuture<'static, HookReturn> {
        Box::pin(std::future::ready(HookReturn {
            failure: Some(HookFailure::NotRun("hooks are not run here".into())),
            ..HookReturn::default()
        }))
    }
}
