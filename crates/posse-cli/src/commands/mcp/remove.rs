//! `posse mcp remove`.

use std::process::ExitCode;

use super::file::ScopeFile;
use super::{LocalServers, ServerScope};
use crate::error::Advised;
use crate::output::{say, tame};

/// Remove an MCP server from the file that declares it.
#[derive(clap::Args)]
pub(super) struct RemoveServer {
    /// Name of the server
    name: String,
    /// Whose server is meant, if there are several of this name
    #[arg(short, long, value_enum)]
    scope: Option<ServerScope>,
}

impl RemoveServer {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        // One whose entry is broken can be removed, too, if its scope is said.
        if let Some(scope) = self.scope
            && ScopeFile::of(scope)?.remove(&self.name)?
        {
            return Ok(self.removed(scope));
        }
        let here = LocalServers::here()?;
        let found = here.named(&self.name)?;
        let of_scope = found.iter().filter_map(|(server, _)| {
            let scope = ServerScope::of(server)?;
            let is_meant = self.scope.is_none_or(|meant| meant == scope);
            is_meant.then_some((*server, scope))
        });
        let meant: Vec<_> = of_scope.collect();
        let name = tame(&self.name);
        match meant[..] {
            [(server, scope)] => {
                ScopeFile::with(server, scope)?.remove(&self.name)?;
                Ok(self.removed(scope))
            }
            [] => {
                let sources: Vec<&str> = found
                    .iter()
                    .map(|(server, _)| server.origin.source.as_str())
                    .collect();
                anyhow::bail!(Advised {
                    what: format!("the MCP server {name} is {} here", sources.join(" and ")),
                    advice: "name its scope, or change the file that declares it: `posse mcp get` \
                             shows it"
                        .into(),
                })
            }
            _ => {
                let scopes: Vec<&str> = meant.iter().map(|(_, scope)| scope.word()).collect();
                anyhow::bail!(Advised {
                    what: format!("there are several MCP servers {name}"),
                    advice: format!("add --scope: {}", scopes.join(" or ")),
                })
            }
        }
    }

    fn removed(&self, scope: ServerScope) -> ExitCode {
        let (name, scope) = (&self.name, scope.word());
        say(&tame(&format!("removed the {scope} MCP server {name}")));
        ExitCode::SUCCESS
    }
}
