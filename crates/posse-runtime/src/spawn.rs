//! Sub-agents: the one door through which every agent but a root comes, and what becomes of them.

pub mod definition;
mod dispatch;
mod door;
pub(crate) mod ending;
pub(crate) mod house;
pub mod limits;
pub(crate) mod nudge;
pub mod output;
pub mod route;
pub(crate) mod run;
pub(crate) mod tool;
pub(crate) mod tree;
pub mod words;

use std::sync::Arc;
use std::time::Duration;

pub use definition::Definition;

use crate::govern::Budgets;

/// How agents of a session may start others.
#[derive(Clone, Debug)]
pub struct Spawning {
    /// The types that can be started.
    pub types: Arc<[Definition]>,
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
}

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
