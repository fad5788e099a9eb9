//! The terminal front end of posse: a conversation with one agent, and everybody around it.
//!
//! `text` turns words into styled lines, `theme` says in which colours, `edit` is the prompt under the fingers, `question` comes to
//! an answer, `keymap` says what keys do, `conversation`, `board` and `pager` decide and draw, `terminal` puts lines and cells on
//! a real one. Nothing here knows agents but by the words of posse-protocol.

pub mod board;
pub mod conversation;
pub mod edit;
#[cfg(test)]
mod fixtures;
pub mod keymap;
pub mod pager;
pub mod picker;
pub mod question;
pub mod terminal;
pub mod text;
pub mod theme;
