//! Terminals for teammates: panes of the user's tmux, or whatever a command of the user opens.
//! Each runs posse itself, which takes the member from the store.

mod color;
mod command;
mod launch;
mod pane_layout;
mod tmux;

pub use color::Color;
pub use command::{CommandPanes, Template, WrongTemplate};
pub use launch::{Launch, Variable};
pub use tmux::{Inside, Place, TmuxPanes};
