//! What an agent is given: its profile, which is stored, and its setup, which the process provides.

use std::sync::Arc;
use std::time::Duration;

use crate::definition::terms::Terms;
use posse_protocol::PermissionMode;

use crate::definition::agent_type::{Definition, FORK};
use crate::definition::output_schema::OutputSchema;
use crate::definition::skill::Skill;
use crate::definition::spawning::Spawning;
use crate::govern::Budget;
use crate::prompt::Reader;
use crate::prompt::agent_tool::Forking;
use posse_permission::Policy;
use posse_port::model::{Effort, Thinking};
use posse_port::tool::{Toolbox, Workspace};

/// What an agent is for its whole life; kept in the store.
#[derive(Clone, Debug)]
pub struct AgentProfile {
    /// The model's name.
    pub model: String,
    /// The system prompt, block by block.
    pub system: Vec<String>,
    /// Thinking of the model.
    pub thinking: Thinking,
    /// Reasoning effort.
    pub effort: Option<Effort>,
    /// Initial permission mode.
    pub mode: PermissionMode,
}

impl AgentProfile {
    /// An agent in the default mode, with the model's own thinking and effort.
    pub fn new(model: impl Into<String>, system: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            system: vec![system.into()],
            thinking: Thinking::Default,
            effort: None,
            mode: PermissionMode::Default,
        }
    }
}

/// What the process that runs an agent provides; not stored.
#[derive(Clone)]
pub struct Setup {
    /// Its tools. The model of a resumed agent knows those it was started with.
    pub tools: Toolbox,
    /// Permission rules.
    pub policy: Arc<Policy>,
    /// Directories that it works in.
    pub workspace: Arc<Workspace>,
    /// Limits of a run.
    pub limits: Limits,
    /// Who answers when a rule says ask.
    pub approver: Approver,
    /// Settings for starting other agents.
    pub spawning: Spawning,
    /// If true, prompts that arrive during a run join it at the next tool boundary. Otherwise each
    /// gets a run of its own.
    pub joins: bool,
    /// Schema that the main agent's answers must match.
    pub output_schema: Option<OutputSchema>,
}

impl Setup {
    /// The setup of an agent with these tools in this workspace: no rules, nobody who answers when
    /// a rule says ask, no limits but on the length of a reply, and no agents that it can start.
    pub fn new(tools: Toolbox, workspace: Workspace) -> Self {
        Self {
            tools,
            policy: Arc::default(),
            workspace: Arc::new(workspace),
            limits: Limits::default(),
            approver: Approver::Nobody,
            spawning: Spawning::default(),
            joins: false,
            output_schema: None,
        }
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of the agent's own model calls in a run.
    pub turns: Option<u32>,
    /// Budget of the session from now on, all agents together: no call is made that could exceed
    /// it.
    pub budget: Budget,
    /// Maximum length of a reply, in tokens.
    pub max_tokens: u32,
    /// Size of a prompt, in tokens, at which the history is compacted. The default is near the end
    /// of the model's window.
    pub compact_at: Option<u64>,
    /// Maximum number of times that a call may fail in the same way.
    pub repeats: Repeats,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: None,
            budget: Budget::default(),
            max_tokens: 32_000,
            compact_at: None,
            repeats: Repeats::default(),
        }
    }
}

/// How often a call may fail in a row with the same input and the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// The model is told at this count.
    pub notice: u32,
    /// The run ends at this count.
    pub stop: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { notice: 3, stop: 5 }
    }
}

/// Who answers when a rule says ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approver {
    /// Nobody: the action is denied, and the model is told why.
    Nobody,
    /// The front end, by [`Command::Answer`](posse_protocol::Command::Answer). What is open when it
    /// leaves is denied.
    FrontEnd,
    /// Whoever comes, from any process. What is not answered in this time is denied.
    Anyone(Duration),
    /// Whoever comes, until this long after the session's main agent was last at work.
    WhileUsed(Duration),
}

/// Returns what an agent with these tools can be told to do.
pub(crate) fn reader(tools: &Toolbox) -> Reader {
    Reader {
        reads: tools.get("Read").is_some(),
        sends: tools.get("SendMessage").is_some(),
    }
}

/// Returns the types that may be started: those that no rule denies.
pub(crate) fn startable(setup: &Setup) -> Vec<Arc<Definition>> {
    let allowed = |kind: &&Arc<Definition>| !setup.policy.forbids_agent(&kind.name);
    setup
        .spawning
        .types
        .now()
        .iter()
        .filter(allowed)
        .cloned()
        .collect()
}

/// Returns whether agents of a session may fork, and when.
pub(crate) fn forking(setup: &Setup) -> Forking {
    match setup.spawning.implicit_fork {
        _ if setup.policy.forbids_agent(FORK) => Forking::Denied,
        true => Forking::Implicit,
        false => Forking::Asked,
    }
}

/// Returns the skills that a model may load: those that no rule denies.
pub(crate) fn loadable(setup: &Setup) -> Vec<Arc<Skill>> {
    let skills = setup
        .spawning
        .skills
        .as_ref()
        .map(|skills| skills.now())
        .unwrap_or_default();
    let may = |skill: &&Arc<Skill>| skill.for_model && !setup.policy.forbids_skill(&skill.name);
    skills.iter().filter(may).cloned().collect()
}

/// Returns the types that an agent at this depth may start; none if it is too deep.
pub(crate) fn startable_at(
    depth: u32,
    setup: &Setup,
    terms: &Terms,
) -> Option<Vec<Arc<Definition>>> {
    // A fork has its parent's tools, whose descriptions name the types: another list would change
    // the bytes that it shares with its parent.
    let depth = depth.saturating_sub(u32::from(terms.fork.is_some()));
    (depth < setup.spawning.depth).then(|| startable(setup))
}
