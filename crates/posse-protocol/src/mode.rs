//! Permission modes: what an agent may do without being allowed by a rule or a person.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far an agent may go by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Reading only.
    Plan,
    /// Reads are free; the rest by rule, or asked.
    #[default]
    Default,
    /// Edits inside the allowed roots are free too.
    AcceptEdits,
    /// What would be asked is denied.
    DontAsk,
    /// Only deny rules hold.
    BypassPermissions,
}

impl PermissionMode {
    /// Every mode, strictest first.
    pub const ALL: [Self; 5] = [
        Self::Plan,
        Self::DontAsk,
        Self::Default,
        Self::AcceptEdits,
        Self::BypassPermissions,
    ];

    /// Its place in the order of strictness; 0 is the strictest.
    pub fn strictness(self) -> usize {
        let is_it = |other: &Self| *other == self;
        Self::ALL.iter().position(is_it).unwrap_or_default()
    }

    /// The word in settings, flags and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PermissionMode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == word)
            .ok_or_else(|| UnknownMode(word.to_owned()))
    }
}

/// A word that names no mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMode(pub String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = PermissionMode::ALL.map(PermissionMode::as_str).join(", ");
        write!(f, "`{}` is not a permission mode; use one of {all}", self.0)
    }
}

impl std::error::Error for UnknownMode {}
