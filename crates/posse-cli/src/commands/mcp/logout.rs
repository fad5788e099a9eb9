//! `posse mcp logout`.

use std::process::ExitCode;

use super::sign_in_target::SignInTarget;
use crate::assemble::sign_in::{explained, sign_ins};
use crate::config::caller;
use crate::output::{say, tame};

/// Forget the sign-in to an MCP server.
#[derive(clap::Args)]
pub(super) struct LogoutServer {
    /// Name of the server
    name: String,
}

impl LogoutServer {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        caller::only_a_person_can("sign out of MCP servers")?;
        let target = SignInTarget::find(&self.name)?;
        let sign_ins = sign_ins()?;
        let name = tame(&self.name);
        let forgotten = crate::config::runtime()?.block_on(sign_ins.forget(&target.url));
        let forgotten = forgotten.map_err(|error| explained(error, &name))?;
        say(&match forgotten {
            true => format!("signed out of {name}"),
            false => format!("nobody has signed in to {name}"),
        });
        Ok(ExitCode::SUCCESS)
    }
}
