//! What the functions of this room share: the ways out, the registry, and what is being done for
//! agents that are not in memory.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use posse_port::Ports;
use posse_port::tool::Toolbox;
use posse_protocol::AgentId;
use tokio_util::sync::DropGuard;

use crate::definition::agent_type::Definition;
use crate::definition::terms::Terms;
use crate::live::registry::Registry;
use crate::live::setup::Setup;
use crate::supervise::Supervisor;

/// Makes agents, and brings them back.
pub(crate) struct Factory {
    pub(crate) ports: Ports,
    pub(crate) supervisor: Supervisor,
    pub(crate) registry: Arc<Registry>,
    /// The tools that agents have besides those they are given.
    pub(crate) tools: Box<dyn AgentTools>,
    /// Held from the check that there is room for members until the members taken up are counted.
    pub(crate) adopting: tokio::sync::Mutex<()>,
    /// Agents that could not be brought back, with the newest mail for them then.
    pub(crate) beyond_reach: Mutex<HashMap<AgentId, u64>>,
    /// Members that a worker leaves to others, and has said why.
    pub(crate) left: Mutex<HashSet<AgentId>>,
    /// True once this process was taken for dead.
    pub(crate) fenced: AtomicBool,
    /// Ends the dispatcher with the factory.
    pub(crate) dispatching: OnceLock<DropGuard>,
}

impl Factory {
    /// A factory that reaches the outside through `ports`.
    pub(crate) fn new(ports: Ports, tools: Box<dyn AgentTools>) -> Self {
        Self {
            ports,
            supervisor: Supervisor::default(),
            registry: Arc::default(),
            tools,
            adopting: tokio::sync::Mutex::default(),
            beyond_reach: Mutex::default(),
            left: Mutex::default(),
            fenced: AtomicBool::new(false),
            dispatching: OnceLock::new(),
        }
    }
}

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
