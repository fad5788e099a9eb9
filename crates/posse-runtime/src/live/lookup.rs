//! Agents as the store has them, and the sessions they belong to.

use std::sync::Arc;

use crate::definition::terms::Terms;
use posse_protocol::{AgentId, Name, RealmId};

use crate::live::registry::Registry;
use crate::live::session::Session;
use posse_port::store::{AgentFilter, AgentRecord, Store, StoreError};

/// An agent as the store has it, without its history.
pub(crate) async fn row(
    store: &dyn Store,
    agent: AgentId,
) -> Result<Option<AgentRecord>, StoreError> {
    let filter = AgentFilter {
        id: Some(agent),
        ..AgentFilter::default()
    };
    Ok(store.agents(filter, 1).await?.pop())
}

/// The agent of a realm that is registered under a name.
pub(crate) async fn named(
    store: &dyn Store,
    realm: RealmId,
    name: &Name,
) -> Result<Option<AgentRecord>, StoreError> {
    let (realm, name) = (Some(realm), Some(name.clone()));
    let filter = AgentFilter {
        realm,
        name,
        ..AgentFilter::default()
    };
    Ok(store.agents(filter, 1).await?.pop())
}

/// The session that an agent belongs to, if that lives here.
pub(crate) async fn session_of(
    registry: &Registry,
    store: &dyn Store,
    record: &AgentRecord,
) -> Result<Option<Arc<Session>>, StoreError> {
    let (mut origin, mut top) = (record.origin.clone(), record.agent);
    while let Some(from) = origin {
        if let Some(above) = registry.live_agent(from.parent) {
            return Ok(Some(Arc::clone(&above.session)));
        }
        top = from.parent;
        origin = row(store, top).await?.and_then(|parent| parent.origin);
    }
    Ok(registry.stays_for(top))
}

/// Whether a stored agent is a teammate, or was one.
pub(crate) fn is_teammate(record: &AgentRecord) -> bool {
    let origin = record.origin.as_deref();
    origin
        .and_then(Terms::kept)
        .is_some_and(|terms| terms.teammate.is_some())
}

/// What holds for a stored sub-agent.
pub(crate) fn terms(record: &AgentRecord, session: &Session) -> Terms {
    let Some(origin) = record.origin.as_deref() else {
        return Terms::lost();
    };
    let of_type = || {
        session
            .definition(&origin.agent_type)
            .map(|kind| Terms::of(&kind))
    };
    // An older posse kept none; then it is the type that is there now, or nothing.
    let kept = if origin.terms.is_empty() {
        of_type()
    } else {
        Terms::kept(origin)
    };
    kept.unwrap_or_else(Terms::lost)
}
