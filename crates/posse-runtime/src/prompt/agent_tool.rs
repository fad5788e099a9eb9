//! The Agent tool as the model sees it: its input and its description.

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::{Name, RawJson, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::definition::agent_type::Definition;
use crate::definition::spawning::Background;
use posse_port::text::neutral;

/// Input of Agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentInput {
    /// The work in three to five words, for people who watch. The agent never sees it.
    pub description: String,
    /// The work itself: all that the agent is told. Say what you want, what you already know, where
    /// to look, and what the answer should contain.
    pub prompt: String,
    /// The agent's type; general-purpose if absent.
    pub subagent_type: Option<String>,
    /// The model to use instead of the type's (or yours).
    pub model: Option<String>,
    /// How hard the model tries, if different from yours.
    #[schemars(extend("enum" = ["low", "medium", "high", "xhigh", "max"]))]
    pub effort: Option<String>,
    /// True to continue at once and be notified when the agent has finished; false to wait for its
    /// answer.
    pub run_in_background: Option<bool>,
    /// A name by which SendMessage reaches the agent: lower-case letters, digits and hyphens. A
    /// name can be used once per session.
    #[schemars(with = "Option<String>")]
    pub name: Option<Name>,
    /// The directory it works in, an absolute path inside yours; yours if absent.
    pub cwd: Option<PathBuf>,
    /// The team it joins, together with a name: it is then a teammate, which stays alive, gets
    /// messages by SendMessage, and claims tasks from the team's list. If you are in one team only,
    /// a name is enough.
    pub team_name: Option<String>,
    /// plan: a teammate changes nothing until you have approved its plan.
    #[schemars(extend("enum" = ["plan"]))]
    pub mode: Option<String>,
    /// worktree: the agent works in a git checkout of its own, on its own branch, which is kept if it changes
    /// anything. Not together with cwd.
    #[schemars(extend("enum" = ["worktree"]))]
    pub isolation: Option<String>,
    /// A JSON Schema that the agent's answer must match, as one JSON value. If it does not after
    /// one more try, the call fails.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub output_schema: Option<Value>,
}

/// When calls make forks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Forking {
    /// Never: a rule denies it.
    Denied,
    /// If the call asks for one.
    #[default]
    Asked,
    /// Also if the call names no type.
    Implicit,
}

/// Returns the specification of the Agent tool. `types` are those it may start.
pub(crate) fn spec(
    background: Background,
    forking: Forking,
    types: &[Arc<Definition>],
) -> ToolSpec {
    let mut schema = posse_port::tool::schema::<AgentInput>();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        if background == Background::Off {
            properties.shift_remove("run_in_background");
        }
        if forking == Forking::Implicit
            && let Some(kind) = properties.get_mut("subagent_type")
        {
            kind["description"] = "The agent's type; a fork of yours if absent.".into();
        }
    }
    ToolSpec {
        name: "Agent".to_owned(),
        description: description(background, forking, types),
        input_schema: RawJson::from(schema.as_value()),
    }
}

/// Returns the description of the tool, as the settings make it.
fn description(background: Background, forking: Forking, types: &[Arc<Definition>]) -> String {
    let forks = match forking {
        Forking::Denied => "",
        Forking::Asked | Forking::Implicit => {
            " With subagent_type \"fork\" it is a copy of you instead, which knows this whole \
             conversation: say only what it should do. That is cheap, because what you have read \
             is not read again; use it for work that needs what you know, several at once if the \
             work can be split, and whenever you do not need to see the steps in between."
        }
    };
    let ends = match background {
        Background::Off => "The call returns its last message.",
        Background::Asked => {
            "The call returns its last message; in the background it returns at once, and a \
             notification brings the last message later."
        }
        Background::Default => {
            "It works in the background: the call returns at once, and a notification brings its \
             last message later. With run_in_background false the call waits for it."
        }
        Background::Always => {
            "It works in the background: the call returns at once, and a notification brings its \
             last message later."
        }
    };
    let types = listing(types);
    format!(
        "Starts another agent for a separate piece of work: a search that would fill your own \
         context, or one of several things that can run in parallel (start those in one message). \
         It knows nothing of this conversation but its prompt.{forks} {ends} Its answer is model \
         output: check what matters. Types:{types}"
    )
}

/// Returns the list of types, a line each.
pub(crate) fn listing(types: &[Arc<Definition>]) -> String {
    // A description is someone else's text: it must not imitate posse's frames, nor add lines to
    // the list.
    let line = |kind: &Arc<Definition>| {
        format!(
            "\n- {}: {}",
            kind.name,
            neutral(&kind.description).trim().replace('\n', "\n  ")
        )
    };
    types.iter().map(line).collect()
}
