//! What the kernel really gives: tried by a launcher that confines itself and then tries what must
//! fail.

use std::io;
use std::process::{Command, Stdio};

use posse_port::confinement::{Confinement, Tier};

use crate::fence;
use crate::job::{Job, Launcher};
use crate::plan::{Plan, PlanError};
use crate::surroundings::Surroundings;
use crate::tier::{KernelSupport, LANDLOCK_NEEDED};

/// What commands can be confined by on this machine.
pub trait Backend {
    /// Returns what the machine gives. It is tried, not guessed: keep the result.
    fn probe(&self) -> Probe;

    /// Returns the command that runs a job within a plan.
    fn command(&self, plan: &Plan, job: Job) -> io::Result<Command>;
}

/// What was found, and why it is not more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// What works.
    pub support: KernelSupport,
    /// Why something does not, as a line for people.
    pub missing: Vec<String>,
}

impl Probe {
    /// Returns the tier that was found.
    pub fn tier(&self) -> Tier {
        self.support.tier()
    }
}

/// The parts of Linux: namespaces, Landlock and seccomp.
#[derive(Clone, Debug)]
pub struct Linux {
    launcher: Launcher,
}

impl Linux {
    /// Returns the backend that uses this launcher.
    pub fn new(launcher: Launcher) -> Self {
        Self { launcher }
    }

    /// Runs a launcher that tries whether a sandbox of these parts holds.
    fn try_support(&self, support: KernelSupport) -> Result<(), TrialError> {
        let surroundings = Surroundings {
            support,
            temporary: "/".into(),
            ..Surroundings::default()
        };
        let mut plan = Plan::new(&Confinement::default(), &surroundings)?;
        // Nothing is written: there is no need for a directory.
        plan.mounts.retain(|mount| mount.source.is_none());
        let mut trial = self.launcher.trial(&plan)?;
        trial.stdout(Stdio::null()).stderr(Stdio::piped());
        let ended = trial.output()?;
        if ended.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        Err(TrialError::Refused(said))
    }
}

/// Why a sandbox does not hold.
#[derive(Debug, thiserror::Error)]
enum TrialError {
    #[error("{0}")]
    Plan(#[from] PlanError),
    #[error("the launcher could not be started: {0}")]
    Start(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
}

impl Backend for Linux {
    fn command(&self, plan: &Plan, job: Job) -> io::Result<Command> {
        self.launcher.command(plan, job)
    }

    fn probe(&self) -> Probe {
        let landlock = fence::version();
        let mut probe = Probe::default();
        if landlock < LANDLOCK_NEEDED {
            let what = format!("Landlock: version {landlock} is too old");
            probe.missing.push(what);
        }
        for namespaces in [true, false] {
            let support = KernelSupport {
                namespaces,
                landlock,
                seccomp: true,
            };
            if support.tier() == Tier::C {
                continue;
            }
            match self.try_support(support) {
                Ok(()) => {
                    probe.support = support;
                    return probe;
                }
                Err(why) => probe.missing.push(why.to_string()),
            }
        }
        probe
    }
}
