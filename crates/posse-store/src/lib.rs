//! Where what agents must not lose is kept: adapters of the runtime's store port.
//!
//! [`Sqlite`] is one file on one machine, shared by any number of processes; [`Postgres`] a server for many machines.

mod archive;
mod columns;
mod extent;
mod host_status;
pub mod maintain;
mod postgres;
mod sqlite;
mod wake;
mod write_outcome;

pub use postgres::{Migrated, Postgres, ServerTrouble, migrate, server_trouble};
pub use sqlite::{Sqlite, Timing, Trouble, WritePause, trouble};
