//! Teams: a lead and long-lived teammates, who talk by mail and take work from one list.

pub(crate) mod declared;
pub mod host;
pub(crate) mod panes;
pub(crate) mod workers;
