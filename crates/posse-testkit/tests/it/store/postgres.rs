//! The contract of stores, kept by PostgreSQL; histories, races and processes on it.

#[expect(
    clippy::duplicate_mod,
    reason = "the same promises, each of them a test of its own"
)]
#[path = "contracts.rs"]
mod contracts;

use std::sync::Arc;

use posse_store::Postgres;
use posse_testkit::postgres::Database;
use posse_testkit::store_contract::Open;

/// Holds a contract against PostgreSQL.
async fn everywhere(contract: impl AsyncFn(Open<'_>)) {
    let database = Database::new().unwrap();
    contract(&|| Arc::new(Postgres::open(database.url()).unwrap())).await;
}
