//! Maintenance of a store: integrity check, backup, and removal of unused sessions.
//!
//! These work beside processes that use the store, and block none of them for long. The functions
//! here are for a file, those of [`postgres`] for a server.

mod entry_link;
mod report;

pub(crate) use self::entry_link::{EntryLink, HEAD, LOADED};
pub(crate) use self::report::NAMED;
pub use self::report::{Collected, Health, Unused};
pub use crate::sqlite::maintain::{
    BackupStop, Versions, back_up, check, collect, collect_those, unused, versions,
};

/// The same for a server, by its URL.
pub mod postgres {
    pub use crate::postgres::maintain::{check, collect, collect_those, unused};
}
