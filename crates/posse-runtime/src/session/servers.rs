//! Servers of agents: they begin to connect before the agent is born, and are waited for.

use std::sync::Arc;
use std::time::Duration;

use posse_permission::Rights;
use posse_protocol::AgentId;

use crate::definition::agent_type::Definition;
use crate::definition::server::{AgentServer, DeclaredServer};
use crate::definition::terms::Terms;
use crate::live::servers::{AgentServers, Required, ServedAgent, UsedServers};
use crate::live::session::Session;
use crate::session::error::SpawnError;
use crate::session::factory::Factory;

/// How long servers are waited for without which a type is not started.
const REQUIRED_WITHIN: Duration = Duration::from_secs(30);

/// Returns the servers of an agent; none if none are declared for it. A main agent has neither terms
/// nor a type.
pub(crate) fn connect(
    factory: &Factory,
    session: &Session,
    agent: AgentId,
    rights: &Rights,
    (terms, kind): (Option<&Terms>, Option<&Definition>),
) -> Option<AgentServers> {
    let own = kind.map(own).unwrap_or_default();
    let book = &session.setup.spawning.servers;
    let who = ServedAgent {
        session: session.root,
        session_rights: &session.rights,
        agent,
        rights,
        own: &own,
    };
    let set = session
        .servers
        .of((&factory.ports, &factory.registry.server_lists), book, &who)?;
    Some(AgentServers::new(set, terms))
}

/// Returns the servers that only agents of a type have.
fn own(kind: &Definition) -> Vec<Arc<DeclaredServer>> {
    let own = kind.mcp_servers.iter().filter_map(|server| match server {
        AgentServer::Own(server) => Some(Arc::clone(server)),
        AgentServer::Named(_) => None,
    });
    own.collect()
}

/// Waits for the servers of a new agent: a little for all, and longer for those that its type needs.
pub(super) async fn ready(
    factory: &Factory,
    servers: Option<&AgentServers>,
    kind: &Definition,
) -> Result<(), SpawnError> {
    let clock = &factory.ports.clock;
    let needed = &kind.required_mcp_servers;
    let Some(servers) = servers else {
        return match needed.is_empty() {
            true => Ok(()),
            false => Err(missing(kind, needed.join(", "))),
        };
    };
    let set: &UsedServers = &servers.set;
    set.first_wait(&**clock).await;
    let until = clock.now() + REQUIRED_WITHIN;
    loop {
        match set.required(needed) {
            Required::Here => return Ok(()),
            Required::Coming => {}
            Required::Missing(why) => return Err(missing(kind, why.join("; "))),
        }
        let left = until.saturating_sub(clock.now());
        tokio::select! {
            biased;
            () = set.one_settled() => {}
            () = clock.sleep(left) => {
                return Err(missing(kind, set.coming(needed).join(", ")));
            }
        }
    }
}

/// Returns why a type is not started whose servers are not there.
fn missing(kind: &Definition, servers: String) -> SpawnError {
    SpawnError::Servers {
        kind: kind.name.clone(),
        servers,
    }
}
