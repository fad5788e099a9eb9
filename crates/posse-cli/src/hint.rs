//! Every error a person sees passes here: what happened, then what to do.

use std::process::ExitCode;

use posse_model::SetupError;
use posse_runtime::port::model::{ApiErrorKind, ModelError};

use crate::output::{say, tame};

/// Exit codes; `docs/cli.md` lists them.
pub(crate) const FAILED: u8 = 1;
/// Ended by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// An error with advice of its own.
#[derive(Debug)]
pub(crate) struct Advised {
    pub(crate) what: String,
    pub(crate) advice: String,
}

impl std::fmt::Display for Advised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Advised {}

/// Shows an error with its causes and a hint, and gives the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(error) = error.downcast_ref::<std::io::Error>()
        && error.kind() == std::io::ErrorKind::BrokenPipe
    {
        // Whoever read our output has had enough: nothing went wrong.
        return ExitCode::SUCCESS;
    }
    if let Some(ModelError::Cancelled) = error.downcast_ref() {
        say("\ninterrupted");
        return ExitCode::from(INTERRUPTED);
    }
    // What failed, and what it failed of at bottom: the layers between say the same in more words.
    let mut said = tame(&error.to_string());
    let deepest = tame(&error.root_cause().to_string());
    if !said.contains(&deepest) {
        said = format!("{said}: {deepest}");
    }
    say(&format!("\x1b[1;31merror:\x1b[0m {said}"));
    if let Some(hint) = hint(error) {
        say(&format!("\x1b[1mhint:\x1b[0m {hint}"));
    }
    ExitCode::from(FAILED)
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(advised) = error.downcast_ref::<Advised>() {
        return Some(advised.advice.clone());
    }
    if let Some(SetupError::BadUrl { .. }) = error.downcast_ref() {
        return Some("a base URL looks like http://127.0.0.1:4141 or https://host".into());
    }
    Some(match error.downcast_ref::<ModelError>()? {
        ModelError::Connect { endpoint, .. } => {
            format!("is something listening at {endpoint}? `posse doctor` checks the way there")
        }
        ModelError::Api(error) => match error.kind {
            ApiErrorKind::Authentication => "the key was refused; `posse doctor` shows which one is used",
            ApiErrorKind::Billing | ApiErrorKind::SpendLimit => {
                "the account cannot pay for this; see the provider's console"
            }
            ApiErrorKind::NotFound => {
                "no such model (--model), or no such place: an OpenAI base URL ends in /v1, an Anthropic one \
                 does not"
            }
            ApiErrorKind::RateLimited | ApiErrorKind::Overloaded => {
                "the provider is busy; try again in a few minutes"
            }
            ApiErrorKind::Server | ApiErrorKind::Timeout => "the provider failed; try again",
            ApiErrorKind::TooLarge => "send less: the request is larger than the provider takes",
            ApiErrorKind::Permission => "this key may not do that; ask whoever issued it",
            ApiErrorKind::InvalidRequest | ApiErrorKind::Conflict => return None,
        }
        .to_owned(),
        ModelError::Cut { .. } | ModelError::Stalled { .. } | ModelError::Garbled { .. } => {
            "the connection to the provider is bad; try again, and check proxies in between".into()
        }
        ModelError::Cancelled => return None,
    })
}
