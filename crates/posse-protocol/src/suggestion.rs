//! "Don't ask again": rules that are offered with a question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules that together allow the call that is asked about, as they are written in settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestion {
    /// The rules.
    pub rules: Vec<String>,
}

/// Where an accepted rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// Until the session ends.
    Session,
    /// In this directory, in later sessions too.
    Directory,
    /// In every session of the user.
    Everywhere,
}
