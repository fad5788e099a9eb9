//! The proxy through which confined commands reach hosts: HTTP, `CONNECT` and SOCKS5 on one port,
//! told apart by the first byte. Each host is asked for while its connection waits. Names are
//! resolved here, outside, and what was resolved is what is connected to.

mod dial;
mod head;
mod http;
mod socks;
mod target;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_port::clock::Clock;
use posse_port::tool::{HostGate, HostRefused};
use posse_sandbox::handover;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

pub use dial::Upstream;
use dial::{DialError, DialFor, Dialled};
use target::Target;

/// How many connections of one command are open at once; more wait.
const MOST: usize = 256;
/// How long to wait before accepting again after that has failed.
const PAUSE: Duration = Duration::from_millis(100);
/// How many hosts are named that a command was not let to.
const MOST_TOLD: usize = 8;
/// The first byte of a client that speaks SOCKS5.
const SOCKS5: u8 = 5;

/// What the proxy of a command goes by.
pub(crate) struct ProxyTerms {
    pub(crate) gate: Arc<dyn HostGate>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The proxy that this one uses itself.
    pub(crate) upstream: Option<Arc<Upstream>>,
}

/// The proxy of a command. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// Dropping it ends the task, and with it all connections.
    _task: JoinSet<()>,
    refused: Arc<RefusedHosts>,
}

impl Proxy {
    /// Starts a proxy, and returns the socket through which it is given what it accepts on.
    pub(crate) fn start(terms: ProxyTerms) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        let refused = Arc::<RefusedHosts>::default();
        let server = Arc::new(Server {
            terms,
            refused: Arc::clone(&refused),
        });
        let mut task = JoinSet::new();
        task.spawn(async move {
            // It fails only if the command was not started.
            if let Ok(listener) = given(ours).await {
                server.serve(listener).await;
            }
        });
        let proxy = Self {
            _task: task,
            refused,
        };
        Ok((proxy, theirs.into()))
    }

    /// Returns what the model is told about hosts that were not reached.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.refused.notes()
    }
}

/// Waits for what to accept on.
async fn given(socket: UnixStream) -> io::Result<TcpListener> {
    let descriptors = loop {
        socket.readable().await?;
        match socket.try_io(Interest::READABLE, || handover::receive(&socket)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => break received?,
        }
    };
    let mut descriptors = descriptors.into_iter();
    let listener = descriptors.next().ok_or(io::ErrorKind::InvalidData)?;
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Hosts that a command was not let to, with the reasons.
#[derive(Debug, Default)]
struct RefusedHosts(Mutex<BTreeMap<String, String>>);

impl RefusedHosts {
    fn add(&self, target: &Target, why: &str) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() <= MOST_TOLD {
            refused.insert(target.to_string(), why.to_owned());
        }
    }

    fn notes(&self) -> Vec<String> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes: Vec<String> = refused
            .iter()
            .take(MOST_TOLD)
            .map(|(target, why)| format!("(the sandbox did not let it connect to {target}: {why})"))
            .collect();
        if refused.len() > MOST_TOLD {
            notes.push("(and to further hosts)".into());
        }
        notes
    }
}

/// Serves the connections of one command.
struct Server {
    terms: ProxyTerms,
    refused: Arc<RefusedHosts>,
}

impl Server {
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < MOST => match accepted {
                    Ok((client, _)) => {
                        let server = Arc::clone(&self);
                        connections.spawn(async move { server.connected(client).await });
                    }
                    // Too many files are open.
                    Err(_) => self.terms.clock.sleep(PAUSE).await,
                },
            }
        }
    }

    /// Serves one connection. Its errors are the client's, which sees that it is closed.
    async fn connected(&self, client: TcpStream) {
        let mut first = [0];
        let _ended = match client.peek(&mut first).await {
            Ok(1) if first == [SOCKS5] => socks::serve(self, client).await,
            Ok(1) => http::serve(self, client).await,
            _ => Ok(()),
        };
    }

    /// Returns whether a host may be connected to; if not, why.
    async fn admit(&self, target: &Target) -> Result<(), HostRefused> {
        let admitted = self.terms.gate.admit(&target.host, target.port).await;
        admitted.inspect_err(|refused| self.refused.add(target, &refused.why))
    }

    /// Connects to a host that was admitted.
    async fn dial(&self, target: &Target, purpose: DialFor) -> Result<Dialled, DialError> {
        let dialled = dial::dial(&self.terms, target, purpose).await;
        dialled.inspect_err(|error| {
            if matches!(error, DialError::NotPublic { .. }) {
                self.refused.add(target, &error.to_string());
            }
        })
    }
}
