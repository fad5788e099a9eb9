//! Texts that are not printed by accident.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::mcp) struct Secret(String);

impl Secret {
    /// Returns the text.
    pub(in crate::mcp) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}
