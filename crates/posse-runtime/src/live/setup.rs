//! What an agent is given: what it is for life, and what the process that runs it gives it.

use std::sync::Arc;

use crate::definition::terms::Terms;
use posse_protocol::PermissionMode;

use crate::definition::agent_type::{Definition, FORK};
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
    /// Whether the model thinks.
    pub thinking: Thinking,
    /// How hard it tries.
    pub effort: Option<Effort>,
    /// The mode it starts in.
    pub mode: PermissionMode,
}

/// What an agent is given by the process that runs it; not kept.
#[derive(Clone)]
pub struct Setup {
    /// Its tools. Of a resumed agent the model knows those it was started with.
    pub tools: Toolbox,
    /// Its rules.
    pub policy: Arc<Policy>,
    /// Where it works.
    pub workspace: Arc<Workspace>,
    /// How far a run may go.
    pub limits: Limits,
    /// Who answers when a rule says ask.
    pub approver: Approver,
    /// How it may start others.
    pub spawning: Spawning,
    /// Whether words that come while it works join its run at the next tool boundary. If not, each gets
    /// a run of its own.
    pub joins: bool,
}

/// How far a run may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Model calls of the agent itself in a run.
    pub turns: Option<u32>,
    /// What the session may use from now on, all agents together: no call is made that could exceed it.
    pub budget: Budget,
    /// The longest reply, in tokens.
    pub max_tokens: u32,
    /// How large a prompt may be, in tokens, before a summary takes its place: by itself near the end of
    /// the model's window.
    pub compact_at: Option<u64>,
}

/// Who answers when a rule says ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approver {
    /// Nobody: what would be asked is denied, and the model is told why.
    Nobody,
    /// The front end, by [`Command::Answer`](posse_protocol::Command::Answer).
    FrontEnd,
}

/// What an agent with these tools can be told to do.
pub(crate) fn reader(tools: &Toolbox) -> Reader {
    Reader {
        reads: tools.get("Read").is_some(),
        sends: tools.get("SendMessage").is_some(),
    }
}

/// The types that may be started: those that no rule denies.
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

/// Whether agents of a session may make forks, and when.
pub(crate) fn forking(setup: &Setup) -> Forking {
    match setup.spawning.implicit_fork {
        _ if setup.policy.forbids_agent(FORK) => Forking::Denied,
        true => Forking::Implicit,
        false => Forking::Asked,
    }
}

/// The skills that a model may load: those that no rule denies.
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

/// The types that an agent at this depth may start. A fork is told of them as if it were its parent.
pub(crate) fn startable_at(
    depth: u32,
    setup: &Setup,
    terms: &Terms,
) -> Option<Vec<Arc<Definition>>> {
    let depth = depth.saturating_sub(u32::from(terms.fork.is_some()));
    (depth < setup.spawning.depth).then(|| startable(setup))
}
