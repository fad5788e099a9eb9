//! One command per file; a command's doc comment is its help text.

pub(crate) mod agents;
pub(crate) mod ask;
pub(crate) mod ask_model;
pub(crate) mod attach;
pub(crate) mod board;
pub(crate) mod cache;
pub(crate) mod completions;
pub(crate) mod confine;
pub(crate) mod cost;
pub(crate) mod doctor;
pub(crate) mod guard;
pub(crate) mod hooks;
pub(crate) mod logout;
pub(crate) mod mail;
pub(crate) mod requests;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod scripted_model;
pub(crate) mod sessions;
pub(crate) mod skills;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod team;
pub(crate) mod trust;
pub(crate) mod worker;
pub(crate) mod worktrees;
