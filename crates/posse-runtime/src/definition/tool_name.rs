//! Names of tools that other rooms than their own must know.

/// The tool that starts agents.
pub(crate) const AGENT: &str = "Agent";
/// The tool that loads skills.
pub(crate) const SKILL: &str = "Skill";
