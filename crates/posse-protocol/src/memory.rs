//! Notes for memory files, which all agents of a place read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose memory file a note is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// The project's, which everybody who works on it shares.
    Project,
    /// The person's own for the project.
    Local,
    /// The person's own for all projects.
    User,
}

impl MemoryScope {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Local => "local",
            Self::User => "user",
        }
    }
}
