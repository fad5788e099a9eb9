//! Teams: a lead and long-lived teammates, who talk by mail and take work from one list.

pub mod host;
pub(crate) mod mate;
mod pane;
pub(crate) mod plan;
pub(crate) mod raise;
pub(crate) mod roster;
pub(crate) mod tool;
pub mod words;
mod worker;
