//! What tells a server from others: those who agree in all of it share one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_port::confinement::Confinement;
use posse_port::process::ProcessBoundary;
use posse_port::servers::{ServerEntry, ServerPlace, ServerSharing, ServerTransport};
use posse_port::tool::Workspace;
use posse_protocol::AgentId;

/// What tells a server from others. Its name does not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerIdentity {
    transport: ServerTransport,
    call_limit: Option<Duration>,
    /// Where a program runs.
    directory: Option<PathBuf>,
    /// What holds it; none if nothing does.
    bounds: Option<(Arc<Confinement>, Arc<Workspace>)>,
    /// The session or agent that has it for itself.
    owner: Option<AgentId>,
}

impl ServerIdentity {
    pub(super) fn of(entry: &ServerEntry, place: &ServerPlace) -> Self {
        let is_program = matches!(entry.transport, ServerTransport::Program { .. });
        Self {
            transport: entry.transport.clone(),
            call_limit: entry.call_limit,
            directory: is_program.then(|| place.directory.clone()),
            bounds: match &place.boundary {
                ProcessBoundary::None => None,
                ProcessBoundary::Sandbox(bounds) => Some((
                    Arc::clone(&bounds.confinement),
                    Arc::clone(&bounds.workspace),
                )),
            },
            owner: match entry.sharing {
                ServerSharing::Process => None,
                ServerSharing::Session => Some(place.session),
                ServerSharing::Agent => Some(place.agent),
            },
        }
    }
}
