//! Errors in fields of front matter.

use crate::definition::output_schema::SchemaError;

/// Why a name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name `{name}` has more than {most} characters")]
    TooLong { name: String, most: usize },
    #[error("the name `{0}` is reserved")]
    Reserved(String),
    #[error("the name `{0}` begins with `-`")]
    BeginsWithDash(String),
    #[error("the name `{0}` does not begin with a letter or a digit")]
    Beginning(String),
    #[error("the name `{name}` contains white space; use `{joined}`")]
    Spaced { name: String, joined: String },
    #[error("the name `{0}` contains white space, and so it could not be called")]
    WhiteSpace(String),
    #[error("the name `{name}` contains {what}; use {allowed}")]
    AgentProfile {
        name: String,
        what: String,
        allowed: &'static str,
    },
}

/// Why a field is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("`{0}` is empty")]
    Empty(String),
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{key}` is a text, not {found}; put it in quotes")]
    NotText { key: String, found: String },
    #[error("`{key}` must be {expected}, not {found}")]
    Expected {
        key: String,
        expected: String,
        found: String,
    },
    #[error("`{key}` must list {expected}, not {found}")]
    Listed {
        key: String,
        expected: &'static str,
        found: String,
    },
    #[error("`{0}` contains an empty name")]
    EmptyName(String),
    #[error("`{key}` has more than {most} {what}")]
    TooMany {
        key: String,
        most: usize,
        what: &'static str,
    },
    #[error("`{key}` cannot be used: {reason}")]
    Schema { key: String, reason: SchemaError },
    #[error("`isolation: remote` is not supported yet; use `worktree`")]
    RemoteIsolation,
    #[error("`tools` has no value: omit it for all tools, write `[]` for none")]
    ToolsWithoutValue,
    #[error("`disallowedTools` takes names; use `tools: []` for an agent without tools")]
    AllDisallowed,
    #[error("`{0}` has an unclosed parenthesis at its end")]
    Unclosed(String),
    #[error("`{0}` is not a tool name; separate names with commas")]
    NotATool(String),
    #[error(
        "`{0}` is not an argument name; use letters, digits and `_`, not beginning with a digit"
    )]
    NotAnArgument(String),
    #[error("`{0}` must name an agent type; `fork` is not one, and `context: fork` is enough")]
    ForkAsAgent(String),
    #[error("`{key}`: `{rule}` is not a rule: {why}")]
    NotARule {
        key: String,
        rule: String,
        why: String,
    },
    #[error("a definition must be an object, not {0}")]
    NotAnObject(String),
}
