//! What all functions that create and revive agents share: the ports, the registry, and the state
//! of agents that are not in memory.

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

/// Creates agents and revives them.
pub(crate) struct Factory {
    /// Store, model, clock and everything else outside.
    pub(crate) ports: Ports,
    /// Starts all tasks.
    pub(crate) supervisor: Supervisor,
    /// Agents that live in this process.
    pub(crate) registry: Arc<Registry>,
    /// Makes the tools that agents have besides those of their setup.
    pub(crate) tools: Box<dyn AgentTools>,
    /// Held from the check that there is room for members until those taken up are counted, so that
    /// two callers cannot fill the same room.
    pub(crate) adopting: tokio::sync::Mutex<()>,
    /// Agents that could not be revived, each with the number of its newest mail at that time. They
    /// are tried again for newer mail only.
    pub(crate) beyond_reach: Mutex<HashMap<AgentId, u64>>,
    /// Members that a worker left to others, and reported once.
    pub(crate) left: Mutex<HashSet<AgentId>>,
    /// True once another process has taken this one for dead.
    pub(crate) fenced: AtomicBool,
    /// Ends the dispatcher when the factory is dropped.
    pub(crate) dispatching: OnceLock<DropGuard>,
}

impl Factory {
    /// Returns a factory that reaches the outside through `ports`.
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

/// Makes the toolbox of an agent. A trait, because the tools start agents through the factory and
/// live in a room above it.
pub(crate) trait AgentTools: Send + Sync {
    /// Returns the tools of an agent.
    fn for_agent(
        &self,
        factory: &Arc<Factory>,
        agent: AgentId,
        setup: &Setup,
        of: ToolsOf<'_>,
    ) -> Toolbox;
}

/// The agent that tools are made for.
#[derive(Clone, Copy)]
pub(crate) struct ToolsOf<'a> {
    /// Terms that were agreed with a sub-agent; none for a main agent.
    pub(crate) terms: Option<&'a Terms>,
    /// Types that it may start; none if it is too deep to start any.
    pub(crate) types: Option<&'a [Arc<Definition>]>,
    /// Name of its model.
    pub(crate) model: &'a str,
    /// True if servers are declared for it.
    pub(crate) has_servers: bool,
}
