//! Looking after the data on a server: are they whole, and what is not needed any more.
//!
//! These work beside hosts that use them, and hold none of them up for long.

mod check;
mod collect;
mod rules;

use posse_port::store::StoreError;
use tokio::runtime::Builder;

use super::connection::ServerConnection;
use super::error::PgFailure;
use super::{column, schema};

pub use check::check;
pub use collect::{collect, unused};

/// Does something with the data at a URL, and waits for it.
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
