//! Connects with servers as a session in this directory would.

use std::sync::Arc;

use posse_port::clock::SystemClock;
use posse_port::process::ProcessBoundary;
use posse_port::servers::{Server, ServerPlace, Servers};
use posse_port::tool::Workspace;
use posse_protocol::AgentId;
use posse_runtime::definition::server::DeclaredServer;
use uuid::Uuid;

use super::LocalServers;
use crate::assemble::{open, sandbox, servers, tools};

/// Servers that were connected.
pub(super) struct ReachedServers<'a> {
    here: &'a LocalServers,
    servers: Arc<dyn Servers>,
    session: AgentId,
    workspace: Arc<Workspace>,
}

impl<'a> ReachedServers<'a> {
    pub(super) fn new(here: &'a LocalServers) -> anyhow::Result<Self> {
        let settings = &here.settings;
        let sandbox = sandbox::sandbox(&settings.sandbox, &[], None);
        let processes = tools::processes(sandbox, Vec::new());
        Ok(Self {
            here,
            servers: servers::connector(processes),
            session: AgentId::from(Uuid::now_v7()),
            workspace: Arc::new(open::workspace(settings, here.cwd.clone())?),
        })
    }

    /// Begins to connect with a server.
    pub(super) fn connect(&self, declared: &DeclaredServer) -> Arc<dyn Server> {
        let settings = &self.here.settings;
        let boundary = match declared.origin.of_repository {
            true => sandbox::of_repository(settings, &self.workspace, "a server of the repository"),
            false => ProcessBoundary::None,
        };
        let place = ServerPlace {
            session: self.session,
            agent: self.session,
            directory: self.here.cwd.clone(),
            boundary,
            clock: Arc::new(SystemClock::default()),
        };
        let entry = self.here.set.resolve(declared, &self.here.cwd).entry;
        self.servers.connect(&Arc::new(entry), &place)
    }

    /// Ends them.
    pub(super) async fn end(self) {
        self.servers.end().await;
    }
}
