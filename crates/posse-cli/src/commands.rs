//! One command per file; a command's doc comment is its help text.

pub(crate) mod agents;
pub(crate) mod ask;
pub(crate) mod ask_model;
pub(crate) mod cache;
pub(crate) mod completions;
pub(crate) mod cost;
pub(crate) mod doctor;
pub(crate) mod guard;
pub(crate) mod mail;
pub(crate) mod run;
pub(crate) mod scripted_model;
pub(crate) mod sessions;
pub(crate) mod skills;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod team;
pub(crate) mod worker;
pub(crate) mod worktrees;

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};

/// A runtime on this thread alone: commands that wait for one thing need no more.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")
}
