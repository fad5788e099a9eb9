//! Sub-agents: the one door through which every agent but a root comes, and what becomes of them.

use std::sync::Arc;
use std::time::Duration;

use crate::definition::catalogue::Catalogue;

use crate::definition::skill::Skills;
use crate::govern::Budgets;
use posse_port::panes::Panes;
use posse_port::worktree::{Base, Dirty};

/// How agents of a session may start others.
#[derive(Clone, Debug)]
pub struct Spawning {
    /// The types that can be started.
    pub types: Arc<Catalogue>,
    /// The skills that can be loaded and called; without them nobody is told of any.
    pub skills: Option<Arc<Skills>>,
    /// The model of every sub-agent, whatever anybody says.
    pub forced_model: Option<String>,
    /// The model of sub-agents for which neither call nor type names one; none for their parent's.
    pub usual_model: Option<String>,
    /// Whether a call that names no type starts a fork.
    pub implicit_fork: bool,
    /// What worktrees begin with.
    pub base: Base,
    /// What becomes of uncommitted work when a worktree is made.
    pub dirty: Dirty,
    /// What every sub-agent is told after its type's own prompt: where it works, the project's
    /// instructions, the day.
    pub context: Arc<[String]>,
    /// How deep the tree may become; the main agent is at 0.
    pub depth: u32,
    /// How many agents may work at once. More wait for a place.
    pub running: usize,
    /// Whether runs go to the background.
    pub background: Background,
    /// After what time a sub-agent that is waited for moves to the background by itself.
    pub auto_background: Option<Duration>,
    /// What each sub-agent may use.
    pub budgets: Budgets,
    /// How much memory the machine must have left, in bytes.
    pub least_memory: u64,
    /// How teams work.
    pub teams: Teaming,
}

/// How teams work.
#[derive(Clone, Debug)]
pub struct Teaming {
    /// Where teammates run that are started.
    pub team_backend: TeamBackend,
    /// How long a teammate has to answer whether it ends; after that it can be forced to.
    pub deadline: Duration,
}

impl Default for Teaming {
    fn default() -> Self {
        Self {
            team_backend: TeamBackend::Here,
            deadline: Duration::from_secs(60),
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
    /// In processes that others have started for that, on this machine or on others.
    Workers,
}

impl TeamBackend {
    /// What they are called in rosters.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Here => IN_PROCESS,
            Self::Panes(panes) => panes.name(),
            Self::Workers => WORKER,
        }
    }
}

/// What runs a teammate that lives where it was started.
pub(crate) const IN_PROCESS: &str = "in-process";
/// What runs a teammate that any worker may take.
pub const WORKER: &str = "worker";

/// Whether runs go to the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Never: nobody can ask for it.
    Off,
    /// When the call or the definition says so.
    #[default]
    Asked,
    /// Unless the call says no.
    Default,
    /// Always, whatever the call says.
    Always,
}
