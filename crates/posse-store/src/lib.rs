//! Durable storage of agents' state: adapters of the runtime's store port.
//!
//! [`Sqlite`] is one file on one machine, shared by any number of processes; [`Postgres`] is a
//! server shared by many machines. Both pass the same contract suite.

mod archive;
mod columns;
mod entry_window;
mod extent;
mod feed_watch;
mod host_status;
pub mod maintain;
mod postgres;
mod sqlite;
mod take_guard;
mod wake;
mod write_outcome;

pub use postgres::{Migrated, Postgres, ServerTrouble, migrate, server_trouble};
pub use sqlite::{
    NamedSession, Sqlite, StoredName, StoredNames, Timing, Trouble, WritePause, trouble,
};
