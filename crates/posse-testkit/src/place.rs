//! The location of a test's store, as one string, and the engine that the rigs use.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use posse_port::store::{Store, StoreError};
use posse_store::{Postgres, Sqlite, Timing};

use crate::postgres::Database;
use crate::scripted::SetupError;

/// Lease of a host in a scenario on a server. Some hosts are killed, which is detected after this
/// time.
const LEASE: &str = "2s";

/// Location of a store: a path, or a `postgres://` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// SQLite.
    File(PathBuf),
    /// PostgreSQL.
    Server(String),
}

impl Place {
    /// Opens the store as a host of its own.
    pub fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::File(path) => Arc::new(Sqlite::open(path)?),
            Self::Server(url) => Arc::new(Postgres::open(url)?),
        })
    }

    /// The same with other timing.
    pub fn open_with(&self, timing: Timing) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::File(path) => Arc::new(Sqlite::open_with(path, timing)?),
            Self::Server(url) => Arc::new(Postgres::open_with(url, timing)?),
        })
    }

    /// The file of a store, if it is one.
    pub fn file(&self) -> Result<&Path, SetupError> {
        match self {
            Self::File(path) => Ok(path),
            Self::Server(url) => Err(format!("{url} is no file").into()),
        }
    }
}

impl FromStr for Place {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        let server = ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| word.starts_with(scheme));
        Ok(if server {
            Self::Server(word.into())
        } else {
            Self::File(word.into())
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(url) => f.write_str(url),
        }
    }
}

impl AsRef<OsStr> for Place {
    fn as_ref(&self) -> &OsStr {
        match self {
            Self::File(path) => path.as_os_str(),
            Self::Server(url) => OsStr::new(url),
        }
    }
}

/// A location for the store of one test, removed with it.
pub struct Ground {
    place: Place,
    /// The file is removed with its directory.
    _database: Option<Database>,
}

impl Ground {
    /// A file in `home`, or a database of the shared server if tests are configured to use one.
    pub fn new(home: &Path) -> Result<Self, SetupError> {
        if on_a_server()? {
            let database = Database::new()?;
            let place = Place::Server(format!("{}?posse_lease={LEASE}", database.url()));
            Ok(Self {
                place,
                _database: Some(database),
            })
        } else {
            Ok(Self {
                place: Place::File(home.join("posse.db")),
                _database: None,
            })
        }
    }

    /// The location.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// `POSSE_TEST_STORE=postgres` runs every scenario on a server.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no other way to tell a test anything"
)]
fn on_a_server() -> Result<bool, SetupError> {
    match std::env::var_os("POSSE_TEST_STORE") {
        None => Ok(false),
        Some(word) if word == "postgres" => Ok(true),
        Some(word) => Err(format!("POSSE_TEST_STORE is {word:?}, and can only be postgres").into()),
    }
}
