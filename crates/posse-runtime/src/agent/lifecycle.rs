//! What an agent needs from the room that makes agents. Nothing else of it is known here.

use std::sync::Arc;

use posse_protocol::{AgentId, RunStatus};
use tokio_util::sync::CancellationToken;

use crate::agent::skill::Ready;
use crate::definition::skill::Fork;
use crate::live::session::Session;
use crate::prompt::Reader;
use posse_port::BoxFuture;
use posse_port::store::CallKey;
use posse_port::tool::{ToolError, ToolOutput};

/// Makes agents, and brings them back.
pub(crate) trait Lifecycle: Send + Sync {
    /// Mail waits for an agent that may not be in memory: wake it, or bring it back.
    fn mail_for(self: Arc<Self>, agent: AgentId);

    /// Starts the members of declared teams that are missing.
    fn start_declared_members(self: Arc<Self>, session: &Arc<Session>);

    /// Has an agent of its own follow a skill, and waits for it unless it works in the background.
    fn follow_skill(
        self: Arc<Self>,
        by: AgentId,
        reader: Reader,
        delegation: Delegation,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<SkillOutcome, ToolError>>;
}

/// The call that starts an agent to follow a skill.
pub(crate) struct Delegation {
    pub(crate) key: CallKey,
    pub(crate) call: String,
    pub(crate) ready: Ready,
    pub(crate) fork: Fork,
}

/// What came of an agent that followed a skill.
pub(crate) struct SkillOutcome {
    /// How it ended; running if it continues in the background.
    pub(crate) status: RunStatus,
    /// What it said, for people.
    pub(crate) text: String,
    /// The same for whoever called.
    pub(crate) told: Result<ToolOutput, ToolError>,
    /// Why it did not come to an end of its own.
    pub(crate) error: Option<String>,
}
