//! Settings for starting sub-agents and teammates.

use std::sync::Arc;
use std::time::Duration;

use crate::definition::catalogue::Catalogue;

use crate::definition::instructions::SessionInstructions;
use crate::definition::server::ServerSet;
use crate::definition::skill::Skills;
use crate::govern::Budgets;
use crate::hook::HookBook;
use posse_port::panes::Panes;
use posse_port::worktree::{Base, Dirty};

/// How agents of a session may start others.
#[derive(Clone, Debug)]
pub struct Spawning {
    /// Types that can be started.
    pub types: Arc<Catalogue>,
    /// Skills that can be loaded and called; none if there is no skill tool.
    pub skills: Option<Arc<Skills>>,
    /// Model of every sub-agent, before all other choices.
    pub forced_model: Option<String>,
    /// Model of sub-agents for which neither call nor type names one; none for their parent's.
    pub usual_model: Option<String>,
    /// True if a call without a type starts a fork.
    pub implicit_fork: bool,
    /// Commit that worktrees begin with.
    pub base: Base,
    /// What happens to uncommitted work when a worktree is made.
    pub dirty: Dirty,
    /// Texts for every sub-agent after its type's prompt: directory, project instructions, date.
    pub context: Arc<[String]>,
    /// Hooks of settings, for every agent.
    pub hooks: Arc<HookBook>,
    /// MCP servers that are declared, those that may not be started as well.
    pub servers: Arc<ServerSet>,
    /// Memory files; none if agents are told of none.
    pub instructions: Option<Arc<SessionInstructions>>,
    /// Maximum depth of agents; the main agent is at 0.
    pub depth: u32,
    /// Number of sub-agents that may call the model at once. The others wait for a permit.
    pub running: usize,
    /// When runs go to the background.
    pub background: Background,
    /// Time after which a sub-agent that a call waits for moves to the background.
    pub auto_background: Option<Duration>,
    /// Budgets of each sub-agent.
    pub budgets: Budgets,
    /// Memory that must stay free on the machine, in bytes.
    pub least_memory: u64,
    /// Settings of teams.
    pub teams: Teaming,
}

impl Default for Spawning {
    /// No types: agents can start no others until they are given some, such as those of
    /// [`built_in`](crate::definition::agent_type::built_in).
    fn default() -> Self {
        Self {
            types: Arc::default(),
            skills: None,
            forced_model: None,
            usual_model: None,
            implicit_fork: false,
            base: Base::default(),
            dirty: Dirty::default(),
            context: Arc::default(),
            hooks: Arc::default(),
            servers: Arc::default(),
            instructions: None,
            depth: 3,
            running: 64,
            background: Background::default(),
            auto_background: None,
            budgets: Budgets::default(),
            least_memory: 256 << 20,
            teams: Teaming::default(),
        }
    }
}

/// Settings of teams.
#[derive(Clone, Debug)]
pub struct Teaming {
    /// Where new teammates run.
    pub team_backend: TeamBackend,
    /// Time that a teammate has to answer a shutdown request; after that it can be forced.
    pub deadline: Duration,
    /// Number of messages between members, none of whom does anything else meanwhile, at which
    /// they are told.
    pub message_notice: u32,
    /// The same number at which the session is paused.
    pub message_limit: u32,
}

impl Default for Teaming {
    fn default() -> Self {
        Self {
            team_backend: TeamBackend::Here,
            deadline: Duration::from_secs(60),
            message_notice: 20,
            message_limit: 40,
        }
    }
}

/// Where teammates run.
#[derive(Clone, Debug, Default)]
pub enum TeamBackend {
    /// In the process that starts them.
    #[default]
    Here,
    /// Each in a process of its own, in a terminal that is opened for it.
    Panes(Arc<dyn Panes>),
    /// In worker processes, on this machine or on others.
    Workers,
}

impl TeamBackend {
    /// Returns its name in rosters.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Here => IN_PROCESS,
            Self::Panes(panes) => panes.name(),
            Self::Workers => WORKER,
        }
    }
}

/// Backend of a teammate that runs where it was started.
pub(crate) const IN_PROCESS: &str = "in-process";
/// Backend of a teammate that any worker may take.
pub const WORKER: &str = "worker";

/// When runs go to the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Never: nobody can ask for it.
    Off,
    /// If the call or the definition says so.
    #[default]
    Asked,
    /// Unless the call says no.
    Default,
    /// Always, whatever the call says.
    Always,
}
