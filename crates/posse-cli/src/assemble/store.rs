//! Opens stores.

use std::sync::Arc;

use posse_port::store::Store;
use posse_store::{Postgres, Sqlite};

use crate::config::store::{DatabaseServer, StoreArgs, StoreLocation};
use crate::config::store_choice::{meant_store, there};

/// Opens the store that flags, environment or settings name, and creates it if it is missing.
pub(crate) fn open_store(store: &StoreArgs) -> anyhow::Result<Arc<dyn Store>> {
    Ok(OpenStore::at(&meant_store(store)?.place)?.store)
}

/// An open store.
#[derive(Clone)]
pub(crate) struct OpenStore {
    pub(crate) store: Arc<dyn Store>,
    /// The same store if it is a file: a process that is stopped while it writes would block all
    /// others.
    pub(crate) file: Option<Arc<Sqlite>>,
}

impl OpenStore {
    /// Opens the store at a location, and creates it if it is missing.
    pub(crate) fn at(place: &StoreLocation) -> anyhow::Result<Self> {
        match place {
            StoreLocation::File(path) => {
                let file = Arc::new(Sqlite::open(path)?);
                Ok(Self {
                    store: file.clone(),
                    file: Some(file),
                })
            }
            StoreLocation::Server(server) => Ok(Self {
                store: open_server(server)?,
                file: None,
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
        _ => Ok(OpenStore::at(&there(meant.place)?)?.store),
    }
}

fn open_server(server: &DatabaseServer) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(Postgres::open(&server.whole())?))
}
