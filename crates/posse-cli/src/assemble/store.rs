//! Opening stores.

use std::sync::Arc;

use posse_port::store::Store;
use posse_store::{Postgres, Sqlite};

use crate::config::store::{Place, Server, StoreArgs};
use crate::config::store_choice::{meant_store, there};

/// Opens the store that is meant, and makes it if it is missing.
pub(crate) fn open_store(store: &StoreArgs) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Opened::at(&meant_store(store)?.place)?.store)
}

/// A store that is open.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The same, if it is a file: whoever stops in its turn to write holds up all others there.
    pub(crate) file: Option<Arc<Sqlite>>,
}

impl Opened {
    /// Opens the store at a place, and makes it if it is missing.
    pub(crate) fn at(place: &Place) -> anyhow::Result<Self> {
        match place {
            Place::File(path) => {
                let file = Arc::new(Sqlite::open(path)?);
                Ok(Self {
                    store: file.clone(),
                    file: Some(file),
                })
            }
            Place::Server(server) => Ok(Self {
                store: open_server(server)?,
                file: None,
            }),
        }
    }
}

/// Opens the store that is meant without making any: one that nobody has named is empty until it is there.
pub(crate) fn look_into_store(store: &StoreArgs) -> anyhow::Result<Arc<dyn Store>> {
    let meant = meant_store(store)?;
    match &meant.place {
        Place::File(path) if !meant.named && !path.exists() => Ok(Arc::new(Sqlite::in_memory()?)),
        _ => Ok(Opened::at(&there(meant.place)?)?.store),
    }
}

fn open_server(server: &Server) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(Postgres::open(&server.whole())?))
}
