//! Teams: a lead and long-lived teammates that exchange messages and share a task list. This room
//! starts their members, here or in other processes.

pub(crate) mod declared;
pub mod host;
pub(crate) mod panes;
pub(crate) mod workers;
