//! What an agent needs from the code that creates agents. A trait, because that code is above.

use std::sync::Arc;

use posse_protocol::{AgentId, Aside, RunStatus};
use tokio_util::sync::CancellationToken;

use crate::agent::skill::Ready;
use crate::definition::skill::Fork;
use crate::live::session::Session;
use crate::prompt::Reader;
use posse_port::BoxFuture;
use posse_port::store::CallKey;
use posse_port::tool::{ToolError, ToolOutput};

/// Creates agents and revives them.
pub(crate) trait Lifecycle: Send + Sync {
    /// Wakes an agent for which mail waits, or revives it.
    fn mail_for(self: Arc<Self>, agent: AgentId);

    /// Starts the missing members of declared teams.
    fn start_declared_members(self: Arc<Self>, session: &Arc<Session>);

    /// Asks an agent a question on the side, and books what that takes.
    fn ask(
        self: Arc<Self>,
        agent: AgentId,
        question: String,
        max_tokens: u32,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Aside>;

    /// Runs a skill in a sub-agent, and waits for it unless it runs in the background.
    fn follow_skill(
        self: Arc<Self>,
        by: AgentId,
        reader: Reader,
        delegation: Delegation,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<SkillOutcome, ToolError>>;
}

/// A request to run a skill in a sub-agent.
pub(crate) struct Delegation {
    /// Call or entry that asks for it.
    pub(crate) key: CallKey,
    /// The model's ID of the call; empty if a person called the skill.
    pub(crate) call: String,
    /// The prepared skill.
    pub(crate) ready: Ready,
    /// Kind of agent that follows it.
    pub(crate) fork: Fork,
}

/// Result of a sub-agent that followed a skill.
pub(crate) struct SkillOutcome {
    /// Its status; running if it continues in the background.
    pub(crate) status: RunStatus,
    /// Its answer, for people.
    pub(crate) text: String,
    /// Its answer, for the model that called the skill.
    pub(crate) told: Result<ToolOutput, ToolError>,
    /// Why it did not complete.
    pub(crate) error: Option<String>,
}
