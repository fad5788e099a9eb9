//! Real PostgreSQL servers for tests: [`Database`] is a database of a server that all tests share,
//! [`Server`] is a separate server, to be killed, promoted and slowed down.
//!
//! Everything that is started ends, even if the test is killed: a process (`postgres-keeper`)
//! guards it.

mod certificate;
mod guard;
mod install;
mod server;
mod shared;

pub use guard::watch;
pub use server::{Options, Server, Sync, sql};
pub use shared::{Database, keep};
