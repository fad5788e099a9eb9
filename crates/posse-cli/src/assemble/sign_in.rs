//! Signing in to MCP servers: where that is kept, and what is said when it fails.

use std::path::PathBuf;
use std::sync::Arc;

use posse_port::clock::SystemClock;
use posse_tools::{McpSignIns, SignInError};

use crate::config::environment;
use crate::error::Advised;

pub(crate) use posse_tools::{PendingSignIn, SignInAnswer};

/// Returns the directory of what is kept; none if there is no home.
pub(super) fn directory() -> Option<PathBuf> {
    environment::posse_home().map(|home| home.join("mcp-credentials"))
}

/// Returns what signs people in.
pub(crate) fn sign_ins() -> anyhow::Result<McpSignIns> {
    let directory = directory().ok_or_else(|| Advised {
        what: "there is no home directory to keep credentials in".into(),
        advice: "set POSSE_HOME".into(),
    })?;
    Ok(McpSignIns::new(directory, Arc::new(SystemClock::default())))
}

/// Returns why a sign-in has failed, with what to do.
pub(crate) fn explained(error: SignInError, server: &str) -> anyhow::Error {
    let advice = match &error {
        SignInError::NoRegistration(_) => {
            "register posse there by hand, with the redirect address http://localhost:PORT/callback, \
             and put `\"oauth\": {\"clientId\": …, \"callbackPort\": PORT}` in the server's entry"
                .to_owned()
        }
        SignInError::NotWanted => format!("`posse mcp check {server}` says whether it can be connected"),
        SignInError::Port { .. } => {
            "another program listens there; end it, or change `callbackPort` in the entry".to_owned()
        }
        SignInError::Unreachable { .. } => {
            "check the address in the entry and the network, and try again".to_owned()
        }
        SignInError::Refused { .. } | SignInError::Callback(_) | SignInError::Answer { .. } => {
            format!("nothing was changed; `posse mcp login {server}` begins anew")
        }
        SignInError::Keep(_) => "check the disk and the rights of posse's home".to_owned(),
        SignInError::Address(_)
        | SignInError::Unsafe(_)
        | SignInError::Resource(_)
        | SignInError::NoMetadata(_)
        | SignInError::Issuer { .. }
        | SignInError::NoProof(_)
        | SignInError::ClientMethod(_) => {
            "this is for those who run the server to repair; a token that they give can be put in a \
             header of the entry"
                .to_owned()
        }
    };
    let why = posse_port::in_a_line(&error);
    anyhow::Error::new(Advised {
        what: format!("{server}: {why}"),
        advice,
    })
}
