//! Creates agents, revives them and ends sessions.
//!
//! `spawn` decides, `create` makes a new agent, `revive` brings a stored one back, `assemble`
//! builds the actor for both, and `recover` settles what a dead process left open. `team` places
//! members in other processes.

pub(crate) mod assemble;
pub mod branch;
pub(crate) mod create;
pub(crate) mod dispatch;
pub(crate) mod error;
pub(crate) mod factory;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod recover;
pub(crate) mod revive;
pub(crate) mod route;
pub(crate) mod servers;
pub mod session_hooks;
pub mod side_query;
pub(crate) mod skill;
pub(crate) mod spawn;
pub mod start_error;
mod start_hooks;
pub mod team;
pub(crate) mod workspace;
pub(crate) mod worktree_guard;
