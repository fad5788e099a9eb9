//! The traits the runtime needs from outside.

pub mod clock;
pub mod memory;
pub mod model;
pub mod panes;
pub mod price;
pub mod store;
pub mod worktree;

use std::future::Future;
use std::pin::Pin;

/// A boxed future: what a port returns where it must be usable as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
