//! Where what agents must not lose is kept: adapters of the runtime's store port.
//!
//! [`Sqlite`] is one file on one machine, shared by any number of processes.

mod sqlite;

pub use sqlite::{Sqlite, Still, Timing, Trouble, maintain, trouble};
