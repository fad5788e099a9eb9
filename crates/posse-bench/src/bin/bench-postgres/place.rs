//! A database for one measurement.

use tokio_postgres::Client;
use uuid::Uuid;

use crate::Failed;
use crate::line::Line;

pub(crate) struct Place {
    /// A connection to another database of the server.
    server: Line,
    name: String,
    pub(crate) url: String,
}

impl Place {
    /// Creates one on the server of which `url` is a database.
    pub(crate) async fn new(url: &str) -> Result<Self, Failed> {
        let (server, _) = url.rsplit_once('/').ok_or("that is no URL of a server")?;
        let name = format!("bench_{}", Uuid::now_v7().simple());
        let place = Self {
            server: Line::new(url).await?,
            url: format!("{server}/{name}"),
            name,
        };
        place
            .server
            .client()
            .batch_execute(&format!("CREATE DATABASE {}", place.name))
            .await?;
        Ok(place)
    }

    /// A connection for measuring, which is not counted itself.
    pub(crate) fn server(&self) -> &Client {
        self.server.client()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Drops the database, so that unwritten data need not reach the disk.
    pub(crate) async fn leave(self) -> Result<(), Failed> {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        Ok(self.server.client().batch_execute(&drop).await?)
    }
}
