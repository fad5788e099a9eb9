//! Maintenance of stores: one interface to a file and a server.

use std::path::Path;

use posse_store::maintain::{self, postgres};
use posse_store::{Migrated, Sqlite};

pub(crate) use posse_store::maintain::{BackupStop, Collected, Health, Unused};

use crate::config::store::StoreLocation;

/// Checks a store. `told` is called before each part.
pub(crate) fn check(
    location: &StoreLocation,
    told: &mut dyn FnMut(&str),
) -> anyhow::Result<Health> {
    Ok(match location {
        StoreLocation::File(path) => maintain::check(path, told)?,
        StoreLocation::Server(server) => postgres::check(&server.whole(), told)?,
    })
}

/// Returns the sessions that were not used since `before`.
pub(crate) fn unused(location: &StoreLocation, before: i64) -> anyhow::Result<Vec<Unused>> {
    Ok(match location {
        StoreLocation::File(path) => maintain::unused(path, before)?,
        StoreLocation::Server(server) => postgres::unused(&server.whole(), before)?,
    })
}

/// Removes the sessions that were not used since `before`.
pub(crate) fn collect(
    location: &StoreLocation,
    before: i64,
    told: &mut dyn FnMut(Collected),
) -> anyhow::Result<Collected> {
    Ok(match location {
        StoreLocation::File(path) => maintain::collect(path, before, told)?,
        StoreLocation::Server(server) => postgres::collect(&server.whole(), before, told)?,
    })
}

/// Like [`collect`], but only those that are `meant`.
pub(crate) fn collect_those(
    location: &StoreLocation,
    before: i64,
    meant: &dyn Fn(&Unused) -> bool,
    told: &mut dyn FnMut(Collected),
) -> anyhow::Result<Collected> {
    Ok(match location {
        StoreLocation::File(path) => maintain::collect_those(path, before, meant, told)?,
        StoreLocation::Server(server) => {
            postgres::collect_those(&server.whole(), before, meant, told)?
        }
    })
}

/// Brings a file up to date, which opening it does.
pub(crate) fn migrate_file(path: &Path) -> anyhow::Result<Migrated> {
    // Read before the file is opened, because opening migrates it.
    let versions = maintain::versions(path)?;
    drop(Sqlite::open(path)?);
    Ok(Migrated {
        from: Some(versions.found),
        to: versions.known,
        oldest: versions.known,
    })
}

/// Brings a server's database up to date; `contract` removes what only older versions of posse need.
pub(crate) fn migrate_server(address: &str, contract: bool) -> anyhow::Result<Migrated> {
    Ok(posse_store::migrate(address, contract)?)
}

/// Copies a file, unless `stop` cancels it, and returns the size of the copy.
pub(crate) fn back_up(from: &Path, to: &Path, stop: &BackupStop) -> anyhow::Result<u64> {
    Ok(maintain::back_up(from, to, stop)?)
}
