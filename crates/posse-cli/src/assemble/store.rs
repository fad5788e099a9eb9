//! Opens stores.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_port::store::Store;
use posse_store::{Postgres, Sqlite, Timing};

use crate::config::environment::posse_home;
use crate::config::store::{StoreArgs, StoreLocation};
use crate::config::store_choice::{meant_store, there};

/// Opens the store that flags, environment or settings name, and creates it if it is missing.
pub(crate) fn open_store(store: &StoreArgs) -> anyhow::Result<Arc<dyn Store>> {
    let meant = meant_store(store)?;
    Ok(OpenStore::at(&meant.place, meant.feed_age)?.store)
}

/// An open store.
#[derive(Clone)]
pub(crate) struct OpenStore {
    pub(crate) store: Arc<dyn Store>,
    /// The same store if it is a file: a process that is stopped while it writes would block all
    /// others.
    pub(crate) file: Option<Arc<Sqlite>>,
    /// Where the processes that use it have sockets by which they can be watched.
    pub(crate) sockets: Option<PathBuf>,
}

impl OpenStore {
    /// Opens the store at a location, and creates it if it is missing. It removes rows of feeds
    /// that are older than `feed_age`; without one, after the store's default time.
    pub(crate) fn at(place: &StoreLocation, feed_age: Option<Duration>) -> anyhow::Result<Self> {
        let feed_age = feed_age.unwrap_or(Timing::default().feed_age);
        match place {
            StoreLocation::File(path) => {
                let timing = Timing {
                    feed_age,
                    ..Timing::default()
                };
                let file = Arc::new(Sqlite::open_with(path, timing)?);
                Ok(Self {
                    store: file.clone(),
                    file: Some(file),
                    sockets: Some(path.with_file_name("hosts")),
                })
            }
            StoreLocation::Server(server) => Ok(Self {
                store: Arc::new(Postgres::open_keeping(&server.whole(), feed_age)?),
                file: None,
                sockets: posse_home().map(|home| home.join("sockets")),
            }),
        }
    }
}

/// Opens the store for reading, without creating it. A default store that does not exist is
/// empty.
pub(crate) fn look_into_store(store: &StoreArgs) -> anyhow::Result<Arc<dyn Store>> {
    let meant = meant_store(store)?;
    match &meant.place {
        // Reading must not leave a file behind.
        StoreLocation::File(path) if !meant.named && !path.exists() => {
            Ok(Arc::new(Sqlite::in_memory()?))
        }
        _ => Ok(OpenStore::at(&there(meant.place)?, meant.feed_age)?.store),
    }
}
