//! The ports: traits for what agents need from outside, and the definition of a tool. Adapters
//! implement them; the runtime uses them and never names an adapter.
//!
//! [`Ports`] are those that a runtime is given, and [`Ports::new`] has what is usual. To write an
//! adapter of your own, begin with [`store::Store`] or [`store::StoreLayer`], [`model::Model`] or
//! [`tool::TypedTool`]: the doc comments are the contract. `posse_runtime` is the guide to the whole.
//!
//! This crate spawns no task; only [`clock::SystemClock`] and [`memory::SystemMemory`] touch the
//! machine.

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

use clock::{Clock, SystemClock};
use hooks::{HookRunner, NoHooks};
use memory::{Ram, SystemMemory};
use model::Model;
use price::{NoPrices, Prices};
use servers::{NoServers, Servers};
use store::Store;
use worktree::{NoWorktrees, Worktrees};

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

impl Ports {
    /// The ports of a runtime that needs a model and a store only: the machine's clock and memory,
    /// no prices, no worktrees, no hooks and no servers. Any of them can be set afterwards.
    pub fn new(model: Arc<dyn Model>, store: Arc<dyn Store>) -> Self {
        Self {
            model,
            store,
            clock: Arc::new(SystemClock::default()),
            prices: Arc::new(NoPrices),
            memory: Arc::new(SystemMemory),
            worktrees: Arc::new(NoWorktrees),
            hooks: Arc::new(NoHooks),
            servers: Arc::new(NoServers),
        }
    }
}
