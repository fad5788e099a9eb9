//! Task lists, and operations on behalf of a person.

use posse_port::store::{Done, Op, OpResult, Order, Store};
use posse_protocol::{ListId, RealmId, Team};

use crate::config::caller;
use crate::output::time::now_ms;

/// Returns the list of a team.
pub(crate) fn list_of(team: &Team) -> ListId {
    ListId {
        realm: team.realm,
        team: Some(team.name.clone()),
    }
}

/// Performs an operation for the person and returns its result; a refusal is an error. An agent's
/// command is refused, too.
pub(crate) async fn operate(store: &dyn Store, realm: RealmId, op: Op) -> anyhow::Result<Done> {
    caller::only_a_person_can("send, answer or change anything here")?;
    let results: Vec<OpResult> = store
        .operate(Order {
            realm,
            ops: vec![op],
            at_ms: now_ms(),
        })
        .await?;
    match results.into_iter().next() {
        Some(result) => Ok(result?),
        // A store answers every operation, so this is a bug of its engine.
        None => anyhow::bail!("the store did not report the result"),
    }
}
