//! `posse mcp add-json`.

use std::process::ExitCode;

use serde_json::Value;

use super::ServerScope;
use super::file::{Replacing, ScopeFile};
use crate::error::Advised;
use crate::output::tame;

/// Declare an MCP server by its entry, as files have it.
#[derive(clap::Args)]
pub(super) struct AddJsonServer {
    /// Name of the server: letters, digits, `_` and `-`
    name: String,
    /// The entry, such as `{"command": "npx", "args": ["-y", "x"]}`
    json: String,
    /// Whom it is for
    #[arg(short, long, value_enum, default_value = "local")]
    scope: ServerScope,
    /// Replace a server of this name
    #[arg(long)]
    force: bool,
}

impl AddJsonServer {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let entry: Value = serde_json::from_str(&self.json).map_err(|error| Advised {
            what: format!("the entry is not JSON: {}", tame(&error.to_string())),
            advice: "put it in single quotes, so that the shell leaves it alone".into(),
        })?;
        let replacing = match self.force {
            true => Replacing::Allowed,
            false => Replacing::Refused,
        };
        ScopeFile::of(self.scope)?.add(&self.name, &entry, replacing)?;
        Ok(ExitCode::SUCCESS)
    }
}
