//! What agents need from outside, as traits, and what a tool is. Adapters implement these; the runtime
//! uses them and never names an adapter.
//!
//! This crate does nothing by itself: it starts no task, opens no file and reads no clock.

pub mod clock;
mod closest;
mod fault;
pub mod memory;
pub mod model;
pub mod panes;
pub mod price;
pub mod store;
pub mod text;
pub mod tool;
pub mod worktree;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use closest::closest;
pub use fault::in_a_line;

use clock::Clock;
use memory::Ram;
use model::Model;
use price::Prices;
use store::Store;
use worktree::Worktrees;

/// A boxed future: what a port returns where it must be usable as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the runtime reaches the outside through.
#[derive(Clone)]
pub struct Ports {
    /// The model API.
    pub model: Arc<dyn Model>,
    /// Where transcripts live.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What model calls cost.
    pub prices: Arc<dyn Prices>,
    /// What is left of the machine's memory.
    pub memory: Arc<dyn Ram>,
    /// Checkouts that agents have for themselves.
    pub worktrees: Arc<dyn Worktrees>,
}
