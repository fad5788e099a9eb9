//! One agent: the pure decisions (`step`), the actor that carries them out, and what it reports.

pub(crate) mod actor;
mod call_cost;
pub(crate) mod ending;
pub(crate) mod events;
pub(crate) mod hook_host;
mod hook_judge;
pub(crate) mod hook_server;
pub(crate) mod hooked_worktree;
mod host_gate;
pub(crate) mod lifecycle;
pub(crate) mod output;
pub(crate) mod person;
pub(crate) mod side_query;
pub(crate) mod skill;
pub(crate) mod step;

pub use crate::agent::side_query::{Hear, SideQueryError};
