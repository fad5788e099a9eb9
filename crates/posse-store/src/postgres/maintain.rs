//! Maintenance of the data on a server: integrity check and removal of unused sessions.
//!
//! These work beside hosts that use the server, and block none of them for long.

mod check;
mod collect;
mod rules;

use posse_port::store::StoreError;
use tokio::runtime::Builder;

use super::connection::ServerConnection;
use super::error::PgFailure;
use super::{column, schema};

pub use check::check;
pub use collect::{collect, collect_those, unused};

/// Runs `work` against the server at a URL and waits for it.
fn at<T>(
    url: &str,
    work: impl AsyncFnOnce(&ServerConnection) -> Result<T, PgFailure>,
) -> Result<T, StoreError> {
    let link = ServerConnection::new(url, None)?;
    let failed = |failure: PgFailure| failure.at(link.place());
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(error.into()))?;
    let done = runtime.block_on(async {
        schema::ready(&link).await?;
        work(&link).await
    });
    done.map_err(failed)
}
