//! Names of tools that are used outside their own modules.

/// The tool that asks a person.
pub(crate) const ASK: &str = "AskUserQuestion";
/// The tool that starts agents.
pub(crate) const AGENT: &str = "Agent";
/// The tool that loads skills.
pub(crate) const SKILL: &str = "Skill";
