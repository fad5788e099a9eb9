//! What this room needs from the room of tools.

use std::sync::Arc;

use posse_protocol::AgentId;

use crate::definition::agent_type::Definition;
use crate::definition::terms::Terms;
use crate::live::setup::Setup;
use crate::session::factory::Factory;
use posse_port::tool::Toolbox;

/// Makes the toolbox of an agent.
pub(crate) trait AgentTools: Send + Sync {
    /// Returns the tools of an agent of this kind.
    fn for_agent(
        &self,
        factory: &Arc<Factory>,
        agent: AgentId,
        setup: &Setup,
        kind: ToolsOf<'_>,
    ) -> Toolbox;
}

/// Whose tools are made.
#[derive(Clone, Copy)]
pub(crate) enum ToolsOf<'a> {
    /// A main agent's, which may start these types.
    Main {
        /// The types.
        types: &'a [Arc<Definition>],
    },
    /// A sub-agent's.
    Sub {
        /// What was agreed with it.
        terms: &'a Terms,
        /// The types it may start; none if it is too deep for that.
        types: Option<&'a [Arc<Definition>]>,
    },
}
