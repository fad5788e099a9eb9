//! What a connection needs to know of its server.

use std::sync::Arc;

use posse_port::process::Processes;
use posse_port::servers::{ServerEntry, ServerPlace, ServerTransport};
use tokio::sync::Semaphore;

use super::http::HttpClients;
use super::listener::Listener;
use super::tail::LogTail;

/// How many servers are connected at once.
const PROGRAM_STARTS: usize = 4;
const HTTP_STARTS: usize = 20;

/// What all servers share.
pub(super) struct ServerMeans {
    pub(super) processes: Arc<dyn Processes>,
    pub(super) clients: HttpClients,
    program_starts: Semaphore,
    http_starts: Semaphore,
}

impl ServerMeans {
    pub(super) fn new(processes: Arc<dyn Processes>) -> Self {
        Self {
            processes,
            clients: HttpClients::default(),
            program_starts: Semaphore::new(PROGRAM_STARTS),
            http_starts: Semaphore::new(HTTP_STARTS),
        }
    }

    /// Returns the places for those that are being connected.
    pub(super) fn starts(&self, transport: &ServerTransport) -> &Semaphore {
        match transport {
            ServerTransport::Program { .. } => &self.program_starts,
            ServerTransport::Http { .. } => &self.http_starts,
        }
    }
}

/// A server that is connected with.
pub(super) struct ServerTarget {
    pub(super) entry: Arc<ServerEntry>,
    pub(super) place: ServerPlace,
    pub(super) means: Arc<ServerMeans>,
    pub(super) log: Arc<LogTail>,
}

impl ServerTarget {
    /// Returns what listens to it.
    pub(super) fn listener(&self) -> Listener {
        Listener::new(
            &self.entry.name,
            self.place.directory.clone(),
            Arc::clone(&self.log),
        )
    }

    /// Returns true if it is a program.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.entry.transport, ServerTransport::Program { .. })
    }
}
