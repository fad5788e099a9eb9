//! What the functions of this room share: the ways out, the registry, and what is being done for
//! agents that are not in memory.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use posse_protocol::AgentId;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agent::lifecycle::{Delegation, Lifecycle, SkillOutcome};
use crate::live::registry::Registry;
use crate::live::session::Tree;
use crate::prompt::Reader;
use crate::session::agent_tools::AgentTools;
use crate::session::team::declared;
use crate::session::{dispatch, skill};
use crate::supervise::Supervisor;
use posse_port::{BoxFuture, Ports};

/// Makes agents, and brings them back.
pub(crate) struct Factory {
    pub(crate) ports: Ports,
    pub(crate) supervisor: Supervisor,
    pub(crate) registry: Arc<Registry>,
    /// The tools that agents have besides those they are given.
    pub(crate) tools: Box<dyn AgentTools>,
    /// Agents that could not be brought back, with the newest mail for them then.
    pub(crate) beyond_reach: Mutex<HashMap<AgentId, u64>>,
    /// Members that a worker leaves to others, and has said why.
    pub(crate) left: Mutex<HashSet<AgentId>>,
    /// True once this process was taken for dead.
    pub(crate) fenced: AtomicBool,
    /// Ends the dispatcher with the factory.
    dispatching: OnceLock<DropGuard>,
}

impl Factory {
    /// A factory that reaches the outside through `ports`.
    pub(crate) fn new(ports: Ports, tools: Box<dyn AgentTools>) -> Self {
        Self {
            ports,
            supervisor: Supervisor::default(),
            registry: Arc::default(),
            tools,
            beyond_reach: Mutex::default(),
            left: Mutex::default(),
            fenced: AtomicBool::new(false),
            dispatching: OnceLock::new(),
        }
    }

    /// Begins to hear of mail, once.
    pub(crate) fn start_dispatching(self: &Arc<Self>) {
        self.dispatching.get_or_init(|| {
            let ended = self.supervisor.branch();
            let dispatcher = dispatch::dispatch(Arc::downgrade(self), ended.clone());
            self.supervisor.start_errand(dispatcher);
            ended.drop_guard()
        });
    }
}

impl Lifecycle for Factory {
    fn mail_for(self: Arc<Self>, agent: AgentId) {
        dispatch::mail_for(&self, agent);
    }

    fn start_declared_members(self: Arc<Self>, session: &Arc<Tree>) {
        declared::start_declared_members(&self, session);
    }

    fn follow_skill(
        self: Arc<Self>,
        by: AgentId,
        reader: Reader,
        delegation: Delegation,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<SkillOutcome, String>> {
        Box::pin(async move { skill::delegate(&self, (by, reader), delegation, &cancel).await })
    }
}
