//! The ports: traits for what agents need from outside, and the definition of a tool. Adapters
//! implement them; the runtime uses them and never names an adapter.
//!
//! This crate spawns no task; only `SystemClock` and `SystemMemory` touch the machine.

pub mod clock;
mod closest;
pub mod confinement;
mod fault;
pub mod hooks;
pub mod memory;
pub mod model;
pub mod panes;
pub mod price;
pub mod process;
pub mod servers;
pub mod store;
pub mod text;
pub mod tool;
pub mod worktree;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use closest::closest;
pub use fault::{in_a_line, retry_after};

use clock::Clock;
use hooks::HookRunner;
use memory::Ram;
use model::Model;
use price::Prices;
use servers::Servers;
use store::Store;
use worktree::Worktrees;

/// A boxed future, returned by ports so that they are usable as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The ports of a runtime.
#[derive(Clone)]
pub struct Ports {
    /// The model API.
    pub model: Arc<dyn Model>,
    /// Storage of transcripts, mail, tasks and teams.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Prices of model calls.
    pub prices: Arc<dyn Prices>,
    /// The machine's available memory.
    pub memory: Arc<dyn Ram>,
    /// Git worktrees of agents.
    pub worktrees: Arc<dyn Worktrees>,
    /// Runs hooks.
    pub hooks: Arc<dyn HookRunner>,
    /// Connects with servers of tools.
    pub servers: Arc<dyn Servers>,
}
