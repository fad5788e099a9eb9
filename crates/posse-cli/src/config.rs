//! What the environment, settings and flags say, before anything is opened.

pub(crate) mod environment;
pub(crate) mod search_paths;
pub(crate) mod settings;
pub(crate) mod store;
pub(crate) mod store_choice;

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};

/// Returns a runtime on this thread alone: commands that wait for one thing need no more.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    // More threads would only cost time at the start: the work is done by tools and servers.
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")
}
