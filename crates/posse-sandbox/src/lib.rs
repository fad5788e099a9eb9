//! The kernel boundary around commands of agents: from a [`Confinement`] to a process that cannot
//! do more. A command is started by a launcher, which is the posse binary itself: it makes
//! namespaces, mounts, a Landlock fence and a filter of system calls, and becomes or starts the
//! command. No process is started here but by the launcher: [`Launcher::command`] returns how to.
//!
//! [`Confinement`]: posse_port::confinement::Confinement

mod after;
mod codec;
mod environment;
mod error;
mod fence;
mod filter;
mod git_index;
mod git_settings;
pub mod handover;
mod inside;
mod job;
mod launch;
mod layout;
mod mounts;
mod plan;
mod probe;
mod refusal;
mod rights;
mod surroundings;
mod tier;
mod trial;

pub use after::{DeepWatch, Finding, KnownTree, Watch};
pub use codec::MessageError;
pub use environment::{CONFINED, NamedProxy, inside as environment_inside};
pub use git_settings::{first_that_runs, reads_run_nothing};
pub use job::{CONFINE, ConfinedJob, Job, JobEnds, Launcher};
pub use launch::run_launcher;
pub use layout::{Repository, Survey};
pub use plan::{Mount, MountKind, Plan, PlanError};
pub use probe::{Backend, Linux, Probe};
pub use refusal::Refusals;
pub use surroundings::Surroundings;
pub use tier::KernelSupport;
