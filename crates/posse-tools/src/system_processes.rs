//! Starts programs: below the watchdog, and in the sandbox if they are to be held.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::clock::Clock;
use posse_port::confinement::{Tier, Where};
use posse_port::process::{
    Process, ProcessBoundary, ProcessBounds, ProcessControl, ProcessEnd, ProcessError,
    ProcessRequest, Processes,
};
use posse_port::tool::HostGate;
use posse_sandbox::Launcher;
use tokio::net::unix::pipe;

use crate::process::{StartedProcess, Starter};
use crate::process_start::{OutsideProcess, OutsideProgram, ProcessStart};
use crate::processes::within;
use crate::proxy::{Proxy, ProxyTerms};
use crate::sandbox::{AfterCommand, CommandRequest, ConfinedCommand, JobProgram, Sandbox};
use crate::spawner::ProcessEnds;
use crate::watchdog::Watchdog;

/// Starts programs on this machine. Clones share the watchdog and the sandbox.
#[derive(Clone, Debug, Default)]
pub struct SystemProcesses(Arc<Surroundings>);

#[derive(Debug, Default)]
struct Surroundings {
    guardian: Option<Watchdog>,
    sandbox: Option<Sandbox>,
    /// Variables of programs outside the sandbox, beside those of posse.
    variables: Vec<(OsString, OsString)>,
}

/// A program that is ready to be started.
pub(crate) struct ReadyProcess {
    pub(crate) start: ProcessStart,
    launcher: Launcher,
    pub(crate) after: AfterCommand,
}

impl ReadyProcess {
    /// Returns a program that nothing holds.
    pub(crate) fn outside(process: OutsideProcess) -> Self {
        Self {
            start: ProcessStart::Outside(process),
            launcher: Launcher::this_program(),
            after: AfterCommand::default(),
        }
    }

    /// Returns a program in a sandbox.
    pub(crate) fn confined(confined: ConfinedCommand) -> Self {
        Self {
            start: ProcessStart::Within(Box::new(confined.job)),
            launcher: Launcher::at(confined.launcher),
            after: confined.after,
        }
    }
}

impl SystemProcesses {
    /// Returns what starts programs. The watchdog ends what was started if this process is killed.
    /// Without a sandbox nothing is held.
    pub fn new(
        guardian: Option<Watchdog>,
        sandbox: Option<Sandbox>,
        variables: Vec<(OsString, OsString)>,
    ) -> Self {
        Self(Arc::new(Surroundings {
            guardian,
            sandbox,
            variables,
        }))
    }

    pub(crate) fn sandbox(&self) -> Option<&Sandbox> {
        self.0.sandbox.as_ref()
    }

    /// Returns the variables of programs outside the sandbox.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.0.variables.iter().cloned()
    }

    /// Returns who starts a program.
    pub(crate) fn starter(&self, ready: &ReadyProcess) -> Starter {
        match &self.0.guardian {
            Some(watchdog) => Starter::Watchdog(watchdog.clone()),
            None => Starter::This(ready.launcher.clone()),
        }
    }

    /// Starts the proxy of a program that is to have one.
    pub(crate) fn serve(
        &self,
        ready: &mut ReadyProcess,
        hosts: &Arc<dyn HostGate>,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<Option<OwnedFd>> {
        let has_proxy =
            matches!(&ready.start, ProcessStart::Within(confined) if confined.plan.has_proxy());
        if !has_proxy {
            return Ok(None);
        }
        let (proxy, socket) = Proxy::start(ProxyTerms {
            gate: Arc::clone(hosts),
            clock: Arc::clone(clock),
            upstream: self.sandbox().and_then(Sandbox::upstream),
        })?;
        ready.after.served_by(proxy);
        Ok(Some(socket))
    }

    /// Prepares a program. Returns how strongly it is held, too.
    async fn prepare(
        &self,
        request: &ProcessRequest,
    ) -> Result<(ReadyProcess, Tier), ProcessError> {
        if let (ProcessBoundary::Sandbox(bounds), Some(sandbox)) =
            (&request.boundary, self.sandbox())
        {
            let tier = sandbox.tier().held_in(&Where::Within {
                bounds: Arc::clone(&bounds.confinement),
                unasked: true,
                opened: Vec::new(),
            });
            let confined = confine(sandbox.clone(), request.clone(), bounds.clone(), tier).await?;
            if let Some(confined) = confined {
                return Ok((ReadyProcess::confined(confined), tier));
            }
        }
        let outside = OutsideProcess {
            program: OutsideProgram::Program(request.words.clone()),
            cwd: request.directory.clone(),
            marker: (&request.marker).into(),
            without: Vec::new(),
            variables: self.variables().chain(request.variables.clone()).collect(),
        };
        Ok((ReadyProcess::outside(outside), Tier::C))
    }

    async fn start_now(self, request: ProcessRequest) -> Result<Process, ProcessError> {
        let (mut ready, tier) = self.prepare(&request).await?;
        let proxy = match &request.boundary {
            ProcessBoundary::Sandbox(bounds) => {
                let served = self.serve(&mut ready, &bounds.hosts, &request.clock);
                served.map_err(ProcessError::Start)?
            }
            ProcessBoundary::None => None,
        };
        let (ours, ends) = connect(proxy).map_err(ProcessError::Start)?;
        let starter = self.starter(&ready);
        let started = StartedProcess::start(ready.start, request.marker, starter, ends).await;
        let process = started.map_err(ProcessError::Start)?;
        Ok(Process {
            input: Box::new(ours.input),
            output: Box::new(ours.output),
            errors: Box::new(ours.errors),
            control: Box::new(Control {
                process,
                after: ready.after,
                clock: request.clock,
            }),
            tier,
        })
    }
}

impl Processes for SystemProcesses {
    fn start(&self, request: ProcessRequest) -> BoxFuture<'static, Result<Process, ProcessError>> {
        Box::pin(self.clone().start_now(request))
    }
}

/// Prepares the sandbox of a program. Returns none if there is none on this machine.
async fn confine(
    sandbox: Sandbox,
    request: ProcessRequest,
    bounds: ProcessBounds,
    tier: Tier,
) -> Result<Option<ConfinedCommand>, ProcessError> {
    // It looks at files.
    let prepared = tokio::task::spawn_blocking(move || {
        sandbox.prepare(&CommandRequest {
            program: JobProgram::Words(&request.words),
            directory: &request.directory,
            variables: &request.variables,
            marker: &request.marker,
            workspace: &bounds.workspace,
            files: &*bounds.files,
            bounds: &bounds.confinement,
            unasked: true,
            opened: &[],
            tier,
        })
    });
    let prepared = prepared
        .await
        .map_err(|error| ProcessError::Sandbox(error.to_string()))?;
    prepared.map_err(|error| ProcessError::Sandbox(error.to_string()))
}

/// posse's ends of what a program is connected with.
struct OwnEnds {
    input: pipe::Sender,
    output: pipe::Receiver,
    errors: pipe::Receiver,
}

/// Connects a program with pipes.
fn connect(proxy: Option<OwnedFd>) -> io::Result<(OwnEnds, ProcessEnds)> {
    let (read, input) = io::pipe()?;
    let (output, printed) = io::pipe()?;
    let (errors, complained) = io::pipe()?;
    let ours = OwnEnds {
        input: pipe::Sender::from_owned_fd(input.into())?,
        output: pipe::Receiver::from_owned_fd(output.into())?,
        errors: pipe::Receiver::from_owned_fd(errors.into())?,
    };
    let theirs = ProcessEnds {
        input: Some(read.into()),
        output: printed.into(),
        errors: Some(complained.into()),
        proxy,
    };
    Ok((ours, theirs))
}

/// A program that was started.
struct Control {
    process: StartedProcess,
    after: AfterCommand,
    clock: Arc<dyn Clock>,
}

impl Control {
    async fn end_now(mut self, patience: Duration) -> ProcessEnd {
        let clock = &*self.clock;
        let ended = within(clock, patience, self.process.ended()).await;
        let family = self.process.family();
        let is_gone = self.process.is_gone() || ended.is_some() && family.settle(clock).await;
        let left = if is_gone { 0 } else { family.end(clock).await };
        // It is gone, or will be with the next look; only its status may be lost.
        let status: Option<ExitStatus> = self.process.reap(clock).await.ok().flatten();
        ProcessEnd {
            status,
            left,
            notes: self.after.check(),
        }
    }
}

impl ProcessControl for Control {
    fn ended(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.process.ended().await;
        })
    }

    fn end(self: Box<Self>, patience: Duration) -> BoxFuture<'static, ProcessEnd> {
        Box::pin(self.end_now(patience))
    }
}
