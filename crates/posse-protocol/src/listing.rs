//! What a prompt may name: files, agent types and commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListKind {
    /// Files of the agent's directory; the most recently changed ones come first.
    Files,
    /// Agent types that the agent may start.
    Agents,
    /// Commands that a prompt may begin with, after a slash.
    Commands,
}

/// A list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What is listed.
    pub what: ListKind,
    /// The part of the name that was asked for.
    pub part: String,
    /// The names that have it.
    pub names: Vec<ListedName>,
    /// How many names have it that are not listed.
    pub left_out: u64,
}

/// A name of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedName {
    /// The name; of a file its path in the agent's directory.
    pub name: String,
    /// What it is; empty for a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
}
