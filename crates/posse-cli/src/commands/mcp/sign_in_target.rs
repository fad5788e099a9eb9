//! The server that somebody signs in to, or out of.

use posse_port::servers::{ServerTransport, SignInEntry};

use super::{LocalServers, ServerStanding, why};
use crate::error::Advised;
use crate::output::tame;

/// A server that can be signed in to.
pub(super) struct SignInTarget {
    pub(super) url: String,
    pub(super) sign_in: SignInEntry,
}

impl SignInTarget {
    /// Returns the server of this name that agents have here.
    pub(super) fn find(name: &str) -> anyhow::Result<Self> {
        let here = LocalServers::here()?;
        let found = here.named(name)?;
        let name = tame(name);
        let active = found.iter().find(|(_, it)| *it == ServerStanding::Active);
        let Some((declared, _)) = active else {
            let why = found.iter().find_map(|(server, _)| why(server));
            anyhow::bail!(Advised {
                what: format!("the MCP server {name} is not started"),
                advice: tame(why.unwrap_or_default()),
            });
        };
        let entry = here.set.resolve(declared, &here.cwd).entry;
        let ServerTransport::Http {
            url,
            headers,
            sign_in,
        } = entry.transport
        else {
            anyhow::bail!(Advised {
                what: format!("the MCP server {name} is a program, which nobody signs in to"),
                advice: "give it what it needs by `env` in its entry".into(),
            });
        };
        if headers
            .iter()
            .any(|(it, _)| it.eq_ignore_ascii_case("authorization"))
        {
            anyhow::bail!(Advised {
                what: format!(
                    "the entry of {name} has a header Authorization, which is used instead"
                ),
                advice: "remove the header from the entry to sign in".into(),
            });
        }
        Ok(Self { url, sign_in })
    }
}
