//! Environment, settings and flags, before anything is opened.

pub(crate) mod age;
pub(crate) mod caller;
pub(crate) mod environment;
pub(crate) mod hook_programs;
pub(crate) mod json_text;
pub(crate) mod kept_rules;
pub(crate) mod key_file;
pub(crate) mod look;
pub(crate) mod replace;
pub(crate) mod search_paths;
pub(crate) mod settings;
pub(crate) mod store;
pub(crate) mod store_choice;
pub(crate) mod text_file;
pub(crate) mod trust;
pub(crate) mod unsupported;

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};

/// Returns a single-threaded runtime.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    // More threads would only slow down the start: the work is done by tools and servers.
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")
}
