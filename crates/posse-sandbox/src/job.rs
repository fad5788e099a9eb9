//! What is to run inside, and how it reaches the launcher.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use posse_port::confinement::Tier;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::codec::{Decoder, Encoder, MessageError};
use crate::environment::{self, NamedProxy};
use crate::handover;
use crate::plan::Plan;

/// The word by which the posse binary is asked to be a launcher.
pub const CONFINE: &str = "confine";
/// The name of the file in memory that the launcher reads its orders from.
pub(crate) const ORDERS: &str = "posse-confine";
/// The temporary directory inside, where mounts make it private.
const TEMPORARY: &str = "/tmp";
/// Where the proxy listens inside, on the loopback interface.
pub(crate) const PROXY_PORT: u16 = 3128;

/// A program that becomes a launcher if its first argument is [`CONFINE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher(PathBuf);

impl Launcher {
    /// The program that is running.
    pub fn this_program() -> Self {
        Self("/proc/self/exe".into())
    }

    /// The program of this path.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self(program.into())
    }

    /// Returns the command that runs a job within a plan. Output and errors can be set, input
    /// is `/dev/null` unless it is among the [`JobEnds`]. Its process leads a session of its own; killing it kills everything inside,
    /// and so does the end of the thread that starts it. It ends as the job does; if the sandbox
    /// cannot be made, it prints why, runs nothing and exits with code 125.
    pub fn command(&self, plan: &Plan, job: Job) -> io::Result<Command> {
        self.command_with(plan, job, JobEnds::default())
    }

    /// Returns the same command, with ends of connections that the job has.
    pub fn command_with(&self, plan: &Plan, job: Job, ends: JobEnds<'_>) -> io::Result<Command> {
        let temporary = match plan.tier() {
            Tier::B => plan.temporary.as_path(),
            _ => Path::new(TEMPORARY),
        };
        let ends = JobEnds {
            proxy: ends.proxy.filter(|_| plan.has_proxy()),
            ..ends
        };
        let proxy = match ends.proxy {
            Some(_) => NamedProxy::Inner(PROXY_PORT),
            None if plan.shares_network() => NamedProxy::Outer,
            None => NamedProxy::None,
        };
        let environment = environment::inside(job.environment, temporary, proxy);
        let job = Job { environment, ..job };
        self.command_of(plan, Some(job), ends)
    }

    /// Returns the command that finds out whether a plan holds: it exits with 0 if it does.
    pub(crate) fn trial(&self, plan: &Plan) -> io::Result<Command> {
        self.command_of(plan, None, JobEnds::default())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is started here; the caller starts it"
    )]
    fn command_of(&self, plan: &Plan, job: Option<Job>, ends: JobEnds<'_>) -> io::Result<Command> {
        let orders = Orders {
            plan: plan.clone(),
            job,
            parent: std::process::id(),
            has_input: ends.input.is_some(),
        };
        let mut file = File::from(memfd_create(ORDERS, MemfdFlags::CLOEXEC)?);
        file.write_all(&orders.to_bytes())?;
        file.rewind()?;
        // They wait in the connection until the launcher takes them, however long that is.
        let (ours, theirs) = handover::pair()?;
        let descriptors = [Some(file.as_fd()), ends.input, ends.proxy];
        let descriptors = descriptors.into_iter().flatten();
        handover::send(&ours, &descriptors.collect::<Vec<_>>())?;
        let mut command = Command::new(&self.0);
        command.arg(CONFINE).env_clear().stdin(theirs);
        Ok(command)
    }
}

/// Ends of connections that a job is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobEnds<'a> {
    /// What it reads as its standard input.
    pub input: Option<BorrowedFd<'a>>,
    /// The socket through which the launcher sends a descriptor on which the proxy accepts the
    /// job's connections, before the job starts. Only used if its plan has a proxy.
    pub proxy: Option<BorrowedFd<'a>>,
}

/// A program to be run, with its surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The program, looked for in the `PATH` of its environment.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its environment, before secrets are taken out and what the sandbox needs is added.
    pub environment: Vec<(OsString, OsString)>,
}

/// A job and the plan that it runs within, as one process sends it to another that starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinedJob {
    /// How it is confined.
    pub plan: Plan,
    /// What runs.
    pub job: Job,
}

impl ConfinedJob {
    /// Returns it as a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let orders = Orders {
            plan: self.plan.clone(),
            job: Some(self.job.clone()),
            parent: 0,
            has_input: false,
        };
        orders.to_bytes()
    }

    /// Returns what a message says.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let Orders { plan, job, .. } = Orders::from_bytes(bytes)?;
        let job = job.ok_or(MessageError)?;
        Ok(Self { plan, job })
    }
}

/// What the launcher is told: how to confine, and what to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Orders {
    pub(crate) plan: Plan,
    /// None to find out whether the plan holds.
    pub(crate) job: Option<Job>,
    /// The process that must be alive.
    pub(crate) parent: u32,
    /// True if the input of the job comes with them.
    pub(crate) has_input: bool,
}

impl Orders {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        let plan = self.plan.to_bytes();
        out.number(u64::from(self.parent));
        out.byte(self.has_input.into());
        out.number(plan.len() as u64);
        let mut out = [out.finish(), plan].concat();
        let mut job = Encoder::default();
        job.byte(self.job.is_some().into());
        if let Some(Job {
            program,
            arguments,
            directory,
            environment,
        }) = &self.job
        {
            job.text(program);
            job.list(arguments, |out, argument| out.text(argument));
            job.text(directory);
            job.list(environment, |out, (name, value)| {
                out.text(name);
                out.text(value);
            });
        }
        out.extend(job.finish());
        out
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut fields = Decoder::new(bytes);
        let parent = u32::try_from(fields.number()?).map_err(|_| MessageError)?;
        let has_input = fields.byte()? != 0;
        let length = usize::try_from(fields.number()?).map_err(|_| MessageError)?;
        let (plan, job) = fields.rest().split_at_checked(length).ok_or(MessageError)?;
        let plan = Plan::from_bytes(plan)?;
        let mut fields = Decoder::new(job);
        let job = match fields.byte()? {
            0 => None,
            1 => Some(Job {
                program: fields.text()?,
                arguments: fields.list(Decoder::text)?,
                directory: fields.path()?,
                environment: fields.list(|fields| Ok((fields.text()?, fields.text()?)))?,
            }),
            _ => return Err(MessageError),
        };
        fields.end()?;
        Ok(Self {
            plan,
            job,
            parent,
            has_input,
        })
    }
}
