//! Types of sub-agents, and the built-in ones.

pub mod file;

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::PermissionMode;
use serde_json::Value;

use crate::definition::model_choice::SMALL;
use crate::definition::server::AgentServer;
use crate::hook::Hook;
use posse_port::model::Effort;

/// Name of the main agent. Reserved.
pub const MAIN: &str = "main";
/// Type of an agent that continues from exactly where its parent is. Never listed.
pub const FORK: &str = "fork";
/// Type of a sub-agent if a call names none.
pub const GENERAL_PURPOSE: &str = "general-purpose";

/// Tools that change nothing.
const READING: [&str; 4] = ["Read", "Grep", "Glob", "WebFetch"];

/// A type of sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Name by which the model starts it; case is ignored.
    pub name: String,
    /// When to use it, for the model.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The only tools it has; none for all of its parent's.
    pub tools: Option<Vec<String>>,
    /// Tools that it never has, whatever `tools` says.
    pub disallowed: Vec<String>,
    /// Its model, or a short name of one; none for its parent's.
    pub model: Option<String>,
    /// Reasoning effort; none for its parent's.
    pub effort: Option<Effort>,
    /// Its mode; it never has more rights than its parent.
    pub mode: Option<PermissionMode>,
    /// True if it runs in the background unless the call says otherwise.
    pub background: bool,
    /// True if it answers once: nobody can write to it later, so its ID is not shown.
    pub one_shot: bool,
    /// Maximum number of model calls in a run.
    pub max_turns: Option<u32>,
    /// Isolation, if it does not work in its parent's directory.
    pub isolation: Option<Isolation>,
    /// Notes that it keeps between sessions.
    pub memory: Option<Memory>,
    /// Text before its prompt.
    pub initial_prompt: Option<String>,
    /// JSON Schema of its answer.
    pub output_schema: Option<Arc<Value>>,
    /// MCP servers without which it is not started, by name or pattern.
    pub required_mcp_servers: Vec<String>,
    /// MCP servers that it has beside those of the session.
    pub mcp_servers: Vec<AgentServer>,
    /// Skills that it begins with, by name.
    pub skills: Vec<String>,
    /// Hooks of its own.
    pub hooks: Vec<Arc<Hook>>,
    /// Colour in front ends.
    pub color: Option<String>,
}

impl Definition {
    /// Returns the name of agents of the type in paths.
    pub(crate) fn label(&self) -> String {
        self.name.to_lowercase()
    }
}

/// How an agent's directory is isolated from its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A git worktree.
    Worktree,
}

/// Notes that agents of a type keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Who shares them.
    pub scope: MemoryScope,
    /// Their directory; created when the first agent of the type is started.
    pub directory: PathBuf,
}

/// Who shares the notes of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryScope {
    /// The user's, in all projects.
    User,
    /// The project's, for everybody who works on it.
    Project,
    /// The project's, on this machine only.
    Local,
}

/// Returns the built-in types, except for the [`guide`].
pub fn built_in() -> Vec<Definition> {
    let general = Definition {
        name: GENERAL_PURPOSE.to_owned(),
        description:
            "Multi-step work that fits no other type: investigating, changing, checking. Has all \
                      your tools."
                .to_owned(),
        prompt: concat!(
            include_str!("../prompt/types/every.md"),
            include_str!("../prompt/types/general-purpose.md")
        )
        .to_owned(),
        ..Definition::default()
    };
    let explore = Definition {
        name: "Explore".to_owned(),
        description:
            "Fast search of a code base or documentation: where something is, what uses it, how it \
                      fits together. Changes nothing. Say how thorough it should be."
                .to_owned(),
        prompt: concat!(
            include_str!("../prompt/types/every.md"),
            include_str!("../prompt/types/explore.md")
        )
        .to_owned(),
        model: Some(SMALL.to_owned()),
        ..reading()
    };
    let plan = Definition {
        name: "Plan".to_owned(),
        description:
            "Reads the code and returns a plan for a change: approach, steps, tests, risks. \
                      Changes nothing."
                .to_owned(),
        prompt: concat!(
            include_str!("../prompt/types/every.md"),
            include_str!("../prompt/types/plan.md")
        )
        .to_owned(),
        tools: Some(
            [&READING[..], &["ExitPlanMode"]]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .collect(),
        ),
        ..reading()
    };
    let bash = Definition {
        name: "Bash".to_owned(),
        description:
            "Runs commands and reports the results in brief: builds, tests, git. Has a shell and \
                      nothing else."
                .to_owned(),
        prompt: concat!(
            include_str!("../prompt/types/every.md"),
            include_str!("../prompt/types/bash.md")
        )
        .to_owned(),
        tools: Some(vec!["Bash".to_owned()]),
        ..Definition::default()
    };
    vec![general, explore, plan, bash]
}

/// Returns the type that answers questions about posse from its documentation.
pub fn guide(documentation: &str) -> Definition {
    let prompt = concat!(
        include_str!("../prompt/types/every.md"),
        include_str!("../prompt/types/guide.md")
    );
    Definition {
        name: "guide".to_owned(),
        description:
            "Answers questions about posse itself from its documentation: commands, options, settings, \
                      agents, permissions. Changes nothing."
                .to_owned(),
        prompt: format!("{prompt}\n{documentation}"),
        model: Some(SMALL.to_owned()),
        ..reading()
    }
}

/// Returns what types that answer once and change nothing have in common.
fn reading() -> Definition {
    Definition {
        tools: Some(READING.map(str::to_owned).to_vec()),
        mode: Some(PermissionMode::Plan),
        one_shot: true,
        ..Definition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves AD-03 (part: general-purpose; Explore; Plan; Bash; guide)
    #[test]
    fn what_is_built_in() {
        let facts = |kind: Definition| {
            let tools = kind.tools.map(|tools| tools.join(" "));
            (kind.name, tools, kind.model, kind.mode, kind.one_shot)
        };
        let (plan, small) = (Some(PermissionMode::Plan), Some("small".to_owned()));
        let only = |tools: &str| Some(tools.to_owned());
        let reading = only("Read Grep Glob WebFetch");
        let planning = only("Read Grep Glob WebFetch ExitPlanMode");
        assert_eq!(
            built_in()
                .into_iter()
                .chain([guide("")])
                .map(facts)
                .collect::<Vec<_>>(),
            [
                ("general-purpose".to_owned(), None, None, None, false),
                (
                    "Explore".to_owned(),
                    reading.clone(),
                    small.clone(),
                    plan,
                    true
                ),
                ("Plan".to_owned(), planning, None, plan, true),
                ("Bash".to_owned(), only("Bash"), None, None, false),
                ("guide".to_owned(), reading, small, plan, true),
            ]
        );
    }

    #[test]
    fn prompts_are_short_and_say_what_a_sub_agent_must_know() {
        for Definition { name, prompt, .. } in built_in().into_iter().chain([guide("")]) {
            let words = prompt.split_whitespace().count();
            assert!(words <= 250, "{name}: {words} words");
            for part in [
                "sub-agent",
                "last message",
                "absolute paths",
                "`SendMessage`",
                "`main`",
            ] {
                assert!(prompt.contains(part), "{name}: nothing about {part}");
            }
        }
    }

    #[test]
    fn the_guide_has_the_documentation_last() {
        assert!(
            guide("## A page\n")
                .prompt
                .ends_with("# The documentation of posse\n\n## A page\n")
        );
    }
}
