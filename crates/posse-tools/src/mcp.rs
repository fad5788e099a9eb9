//! Servers of tools, by the Model Context Protocol: programs and HTTP, in both eras of the protocol.
//!
//! One task keeps a server connected, for all agents that share it; calls run with their callers.

mod call;
mod connection;
mod content;
mod elicitation;
mod facts;
mod handshake;
mod http;
mod http_clients;
mod http_events;
mod http_fault;
mod identity;
mod kept_server;
mod listener;
mod listing;
mod oauth;
mod open_calls;
mod program;
mod pushes;
mod resources;
mod restarts;
mod schema;
mod send_fault;
mod server;
mod slots;
mod stdio;
mod tail;
mod target;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use posse_port::BoxFuture;
use posse_port::process::Processes;
use posse_port::servers::{Server, ServerEntry, ServerPlace, Servers};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::identity::ServerIdentity;
use self::kept_server::KeptServer;
use self::oauth::CredentialFiles;
pub use self::oauth::{McpSignIns, PendingSignIn, SignInAnswer, SignInError, SignedIn};
use self::server::McpServer;
use self::target::ServerMeans;

/// How many calls of a server are made at once.
const MOST_CALLS: usize = 16;

/// The servers of this process. Clones share them. Without a clone they are killed.
#[derive(Clone)]
pub struct McpServers(Arc<SharedServers>);

struct SharedServers {
    means: Arc<ServerMeans>,
    table: Mutex<ServerTable>,
}

#[derive(Default)]
struct ServerTable {
    servers: Vec<SharedServer>,
    /// Keep them connected.
    tasks: JoinSet<()>,
}

/// A server that somebody has, or had.
struct SharedServer {
    identity: ServerIdentity,
    server: Weak<McpServer>,
    life: CancellationToken,
}

impl McpServers {
    /// Returns servers whose programs are started by `processes`.
    pub fn new(processes: Arc<dyn Processes>) -> Self {
        Self::with_means(ServerMeans::new(processes, None))
    }

    /// Returns servers to whom people sign in, too. What is kept of that is in the directory
    /// `credentials`, which need not be there.
    pub fn with_sign_ins(processes: Arc<dyn Processes>, credentials: PathBuf) -> Self {
        let credentials = CredentialFiles::new(credentials);
        Self::with_means(ServerMeans::new(processes, Some(credentials)))
    }

    fn with_means(means: ServerMeans) -> Self {
        Self(Arc::new(SharedServers {
            means: Arc::new(means),
            table: Mutex::default(),
        }))
    }

    fn table(&self) -> MutexGuard<'_, ServerTable> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Servers for McpServers {
    fn connect(&self, entry: &Arc<ServerEntry>, place: &ServerPlace) -> Arc<dyn Server> {
        let identity = ServerIdentity::of(entry, place);
        let mut table = self.table();
        let known = table.servers.iter().find(|it| it.identity == identity);
        if let Some(server) = known.and_then(|it| it.server.upgrade()) {
            server.core.revive();
            return server;
        }
        table.servers.retain(|it| it.server.strong_count() > 0);
        while table.tasks.try_join_next().is_some() {}
        let life = CancellationToken::new();
        let core = Arc::new(KeptServer::new(entry, place, &self.0.means));
        table.tasks.spawn(Arc::clone(&core).run(life.clone()));
        let server = Arc::new(McpServer::new(core, life.clone()));
        table.servers.push(SharedServer {
            identity,
            server: Arc::downgrade(&server),
            life,
        });
        server
    }

    fn end(&self) -> BoxFuture<'static, ()> {
        let ServerTable { servers, mut tasks } = std::mem::take(&mut *self.table());
        let refreshes = self.0.means.refreshes.clone();
        Box::pin(async move {
            servers.iter().for_each(|it| it.life.cancel());
            while tasks.join_next().await.is_some() {}
            refreshes.close();
            refreshes.wait().await;
        })
    }
}
