//! A store of its own for one measurement.

use posse_testkit::place::Place;
use posse_testkit::postgres::sql;
use uuid::Uuid;

use crate::Failed;

pub(crate) struct Ground {
    pub(crate) place: Place,
    /// The server's URL and the database on it.
    database: Option<(String, String)>,
}

impl Ground {
    /// Creates one in a directory, or on the server of which `word` is a database.
    pub(crate) fn new(word: &str) -> Result<Self, Failed> {
        let name = format!("bench_{}", Uuid::now_v7().simple());
        match word.parse()? {
            Place::File(directory) => {
                // Files beside a store are shared by all stores of its directory.
                let directory = directory.join(name);
                std::fs::create_dir(&directory)?;
                Ok(Self {
                    place: Place::File(directory.join("posse.db")),
                    database: None,
                })
            }
            Place::Server(url) => {
                let (server, _) = url.rsplit_once('/').ok_or("that is no URL of a server")?;
                sql(&url, &format!("CREATE DATABASE {name}"))?;
                Ok(Self {
                    place: Place::Server(format!("{server}/{name}")),
                    database: Some((url, name)),
                })
            }
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // So that unwritten data need not reach the disk. A server that is gone has nothing left.
        if let Some((url, name)) = &self.database {
            drop(sql(url, &format!("DROP DATABASE {name} WITH (FORCE)")));
        }
    }
}
