//! Real PostgreSQL servers for tests: [`Database`] is one of a server that all tests share, [`Server`] is a server of
//! one's own, to be killed, promoted and slowed down.
//!
//! Whatever is started ends, also when the test is killed: a process of ours (`postgres-keeper`) watches over it.

mod certificate;
mod guard;
mod install;
mod server;
mod shared;

pub use guard::watch;
pub use server::{Options, Server, Sync, sql};
pub use shared::{Database, keep};
