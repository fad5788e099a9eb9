//! The front end without a screen: it sends an agent commands and shows its events until it ends.
//!
//! [`controller`] decides what happens, without waiting for anything; [`event_loop`] waits, and
//! does what the controller decides.

pub(crate) mod answer;
pub(crate) mod approvals;
mod callbacks;
pub(crate) mod controller;
pub(crate) mod editor;
pub(crate) mod event_loop;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod input;
pub(crate) mod job;
mod keyboard;
pub(crate) mod output_item;
pub(crate) mod pane;
pub(crate) mod panel;
mod permission_updates;
mod question_queue;
pub(crate) mod render;
pub(crate) mod rule_keeper;
pub(crate) mod run_so_far;
pub(crate) mod runs;
pub(crate) mod screen;
pub(crate) mod sending;
pub(crate) mod session_spending;
pub(crate) mod signals;
pub(crate) mod stop;
pub(crate) mod team_snapshot;
pub(crate) mod team_watch;
pub(crate) mod terminal;
pub(crate) mod terminal_guard;
pub(crate) mod view_socket;
pub(crate) mod worker;
pub(crate) mod writer;
