//! Programs that run beside posse: hooks, servers, other agents. Whatever they start ends with them,
//! and with posse.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::BoxFuture;
use crate::clock::Clock;
use crate::confinement::{Confinement, Tier};
use crate::tool::{FileGuard, HostGate, Workspace};

/// Starts programs.
pub trait Processes: Send + Sync {
    /// Starts a program.
    fn start(&self, request: ProcessRequest) -> BoxFuture<'static, Result<Process, ProcessError>>;
}

/// What is to be started.
#[derive(Clone)]
pub struct ProcessRequest {
    /// What runs. The first one is the program, the others are its arguments.
    pub words: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Unique for ever: the program and all that it starts carry it, so that they can be found.
    pub marker: String,
    /// Variables that it has beside those of posse's own environment, without posse's secrets.
    pub variables: Vec<(OsString, OsString)>,
    /// What holds it.
    pub boundary: ProcessBoundary,
    /// Tells how long it may take to end.
    pub clock: Arc<dyn Clock>,
}

/// What holds a program.
#[derive(Clone)]
pub enum ProcessBoundary {
    /// Nothing, as if the person had started it.
    None,
    /// The sandbox, as strong as this machine has it.
    Sandbox(ProcessBounds),
}

/// What a program in a sandbox may touch.
#[derive(Clone)]
pub struct ProcessBounds {
    /// Files and the network.
    pub confinement: Arc<Confinement>,
    /// The directories that it works in.
    pub workspace: Arc<Workspace>,
    /// Permissions of single files.
    pub files: Arc<dyn FileGuard>,
    /// Permissions of hosts.
    pub hosts: Arc<dyn HostGate>,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("it did not start: {0}")]
    Start(#[source] io::Error),
    /// The sandbox cannot hold it.
    #[error("it was not started: {0}")]
    Sandbox(String),
}

/// A program that runs. All that it has started is killed when this is dropped.
pub struct Process {
    /// What it reads.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it prints.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its errors.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// The program itself.
    pub control: Box<dyn ProcessControl>,
    /// How strongly it is held.
    pub tier: Tier,
}

impl fmt::Debug for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Process")
            .field("tier", &self.tier)
            .finish_non_exhaustive()
    }
}

/// Waits for a program, and ends it.
pub trait ProcessControl: Send {
    /// Waits until the program itself has ended. What it has started may still run.
    fn ended(&mut self) -> BoxFuture<'_, ()>;

    /// Gives it this long to end by itself, then asks it and all that it has started to end, and
    /// kills what does not.
    fn end(self: Box<Self>, patience: Duration) -> BoxFuture<'static, ProcessEnd>;
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessEnd {
    /// Its exit status, if it is known.
    pub status: Option<ExitStatus>,
    /// How many processes were still there and had to be ended.
    pub left: usize,
    /// What is told about files that it has made and that must not stay, and about hosts that it
    /// was not let to.
    pub notes: Vec<String>,
}
