//! What the launcher gives up before a command runs, and the command itself.

use std::process::{Command, Stdio};

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use crate::error::{LaunchError, Step as _};
use crate::job::Job;
use crate::plan::Plan;

/// Returns the command of a job.
#[expect(
    clippy::disallowed_methods,
    reason = "the launcher starts what it confines"
)]
pub(crate) fn command(job: &Job) -> Command {
    let mut command = Command::new(&job.program);
    command
        .args(&job.arguments)
        .current_dir(&job.directory)
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null());
    command
}

/// Has the kernel write no image of the memory of a process that crashes: a program outside would
/// write or read it.
pub(crate) fn leave_no_image() -> rustix::io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)
}

/// Sets limits. They hold for this process and those that it starts.
pub(crate) fn limit(plan: &Plan) -> Result<(), LaunchError> {
    leave_no_image().step("limit")?;
    let limits = &plan.limits;
    for (resource, limit) in [
        (Resource::Nproc, limits.processes),
        (Resource::Data, limits.memory),
        (Resource::Fsize, limits.file_size),
    ] {
        let Some(limit) = limit else { continue };
        let now = rustix::process::getrlimit(resource);
        let lowest = |bound: Option<u64>| Some(bound.map_or(limit, |bound| bound.min(limit)));
        let lowered = Rlimit {
            current: lowest(now.current),
            maximum: lowest(now.maximum),
        };
        setrlimit(resource, lowered).step("limit")?;
    }
    Ok(())
}

/// Gives up every capability, and the way to get one again.
pub(crate) fn drop_capabilities() -> Result<(), LaunchError> {
    for capability in CapabilitySet::all() {
        match remove_capability_from_bounding_set(capability) {
            // An older kernel does not know it; and without the right to, there is none to drop
            // that `no_new_privs` would not keep away.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
            Err(error) => return Err(error).step("give up capabilities"),
        }
    }
    clear_ambient_capability_set().step("give up capabilities")?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).step("give up capabilities")
}

/// Returns the signal that asks a process to end.
fn asked_to_end() -> SigSet {
    SigSet::from(Signal::SIGTERM)
}

/// Has this process not end when it is asked to.
pub(crate) fn hold_signals_back() -> Result<(), LaunchError> {
    asked_to_end().thread_block().step("hold signals back")
}

/// Has signals reach what is started from here on, as they would without a launcher.
pub(crate) fn let_signals_through() -> Result<(), LaunchError> {
    asked_to_end().thread_unblock().step("let signals through")
}
