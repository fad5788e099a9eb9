//! The agents that live in this process, and what the agents of a session share.

pub mod boundary;
pub(crate) mod channels;
pub(crate) mod follower;
pub mod handle;
pub(crate) mod lookup;
pub(crate) mod message_row;
pub(crate) mod questions;
pub(crate) mod registry;
pub(crate) mod roster;
pub(crate) mod run;
pub mod servers;
pub(crate) mod session;
pub(crate) mod session_events;
pub mod setup;
pub(crate) mod skill_hooks;
pub(crate) mod stop;
pub mod subscription;
pub mod viewers;
pub(crate) mod wakeup;
