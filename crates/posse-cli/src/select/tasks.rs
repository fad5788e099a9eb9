//! The list of tasks that is meant, and what a person changes in a store.

use posse_port::store::{Done, Op, OpResult, Order, Store};
use posse_protocol::{ListId, RealmId, Team};

use crate::output::time::now_ms;

/// Returns the list of a team.
pub(crate) fn list_of(team: &Team) -> ListId {
    ListId {
        realm: team.realm,
        team: Some(team.name.clone()),
    }
}

/// Does one thing for the person, and gives what came of it; a refusal is an error.
pub(crate) async fn operate(store: &dyn Store, realm: RealmId, op: Op) -> anyhow::Result<Done> {
    let results: Vec<OpResult> = store
        .operate(Order {
            realm,
            ops: vec![op],
            at_ms: now_ms(),
        })
        .await?;
    match results.into_iter().next() {
        Some(result) => Ok(result?),
        // A store answers each operation, so this is a mistake of its engine.
        None => anyhow::bail!("the store did not report the result"),
    }
}
