//! What a connection needs to know of its server.

use std::sync::Arc;

use posse_port::process::Processes;
use posse_port::servers::{ServerEntry, ServerPlace, ServerTransport};
use reqwest::header::AUTHORIZATION;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::http_clients::HttpClients;
use super::listener::Listener;
use super::oauth::{CredentialFiles, TokenSource, takes_tokens};
use super::pushes::PushTakers;
use super::tail::LogTail;

/// How many servers are connected at once.
const PROGRAM_STARTS: usize = 4;
const HTTP_STARTS: usize = 20;

/// What all servers share.
pub(super) struct ServerMeans {
    pub(super) processes: Arc<dyn Processes>,
    pub(super) clients: Arc<HttpClients>,
    /// What is kept of sign-ins; none if they are not kept.
    pub(super) credentials: Option<CredentialFiles>,
    /// Refreshes of tokens that have begun.
    pub(super) refreshes: TaskTracker,
    program_starts: Semaphore,
    http_starts: Semaphore,
}

impl ServerMeans {
    pub(super) fn new(processes: Arc<dyn Processes>, credentials: Option<CredentialFiles>) -> Self {
        Self {
            processes,
            clients: Arc::default(),
            credentials,
            refreshes: TaskTracker::new(),
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
    pub(super) takers: Arc<PushTakers>,
}

impl ServerTarget {
    /// Returns what listens to it.
    pub(super) fn listener(&self) -> Listener {
        let told = (Arc::clone(&self.log), Arc::clone(&self.takers));
        Listener::new(&self.entry.name, self.place.directory.clone(), told)
    }

    /// Returns true if it is a program.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.entry.transport, ServerTransport::Program { .. })
    }

    /// Returns what gives the tokens for it. There is none if its entry says who asks, or if anybody
    /// could read them on their way.
    pub(super) fn tokens(&self) -> Option<TokenSource> {
        let files = self.means.credentials.as_ref()?;
        let ServerTransport::Http { url, headers, .. } = &self.entry.transport else {
            return None;
        };
        let says_who =
            |(name, _): &(String, String)| name.eq_ignore_ascii_case(AUTHORIZATION.as_str());
        if headers.iter().any(says_who) || !takes_tokens(url) {
            return None;
        }
        let (clients, clock) = (
            Arc::clone(&self.means.clients),
            Arc::clone(&self.place.clock),
        );
        let refreshes = self.means.refreshes.clone();
        Some(TokenSource::new(files, url, clients, clock, refreshes))
    }
}
