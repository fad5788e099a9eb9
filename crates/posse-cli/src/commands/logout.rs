//! `posse logout`: forgets the keys that posse keeps.

use std::process::ExitCode;

use anyhow::Context;

use crate::config::{caller, key_file};
use crate::output::say;

/// Forget the keys that were given to posse at its first start.
///
/// Keys in environment variables are not touched.
#[derive(Debug, clap::Args)]
pub(crate) struct LogoutCommand {}

impl LogoutCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        caller::only_a_person_can("forget keys")?;
        let removed = key_file::remove().context("the keys could not be removed")?;
        say(&match removed {
            Some(path) => format!("removed {}", path.display()),
            None => "posse keeps no keys".to_owned(),
        });
        Ok(ExitCode::SUCCESS)
    }
}
