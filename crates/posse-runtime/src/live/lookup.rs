//! Looks up stored agents and the sessions that they belong to.

use std::sync::Arc;

use crate::definition::terms::Terms;
use posse_protocol::{AgentId, Name, RealmId};

use crate::live::registry::Registry;
use crate::live::session::Session;
use posse_port::store::{AgentFilter, AgentRecord, Page, Store, StoreError};

/// Returns an agent's record, without its history.
pub(crate) async fn row(
    store: &dyn Store,
    agent: AgentId,
) -> Result<Option<AgentRecord>, StoreError> {
    let filter = AgentFilter {
        id: Some(agent),
        ..AgentFilter::default()
    };
    Ok(store.agents(filter, Page::first(1)).await?.pop())
}

/// Returns the agent of a realm that has a name.
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
    Ok(store.agents(filter, Page::first(1)).await?.pop())
}

/// Returns the session that an agent belongs to, if it lives here.
pub(crate) async fn session_of(
    registry: &Registry,
    store: &dyn Store,
    record: &AgentRecord,
) -> Result<Option<Arc<Session>>, StoreError> {
    let (mut origin, mut top) = (record.origin.clone(), record.agent);
    while let Some(from) = origin {
        // The nearest ancestor that lives here is enough: every live agent knows its session.
        if let Some(above) = registry.live_agent(from.parent) {
            return Ok(Some(Arc::clone(&above.session)));
        }
        top = from.parent;
        origin = row(store, top).await?.and_then(|parent| parent.origin);
    }
    // No ancestor lives here. The session may still be hosted, without its main agent.
    Ok(registry.stays_for(top))
}

/// Returns true if a stored agent is or was a teammate.
pub(crate) fn is_teammate(record: &AgentRecord) -> bool {
    let origin = record.origin.as_deref();
    origin
        .and_then(Terms::kept)
        .is_some_and(|terms| terms.teammate.is_some())
}

/// Returns the terms of a stored sub-agent.
pub(crate) fn terms(record: &AgentRecord, session: &Session) -> Terms {
    let Some(origin) = record.origin.as_deref() else {
        return Terms::lost();
    };
    let of_type = || {
        session
            .definition(&origin.agent_type)
            .map(|kind| Terms::of(&kind))
    };
    // Records of an older posse have no terms; then those of the current type apply.
    let kept = if origin.terms.is_empty() {
        of_type()
    } else {
        Terms::kept(origin)
    };
    kept.unwrap_or_else(Terms::lost)
}
