//! Terminals of their own for teammates: panes of the user's tmux, or whatever a command of the user's opens.
//! In each runs posse itself and takes the member from the store.

mod command;
mod launch;
mod spot;
mod tmux;

pub use command::{CommandPanes, Template, WrongTemplate};
pub use launch::{Launch, Variable};
pub use tmux::{Inside, Place, TmuxPanes};
