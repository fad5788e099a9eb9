//! The server: accepting connections, and what one request goes through.

mod answer;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::cache::PromptCache;
use crate::limits::{PairSummary, RateLimiter, Reaction};
use crate::pace::{Pace, SystemPace};
use crate::pick::Play;
use crate::record::{Record, Recorded};
use crate::script::Script;
use crate::socket::Socket;

/// How a server is to run.
pub struct ServerOptions {
    /// The port on loopback; 0 for any that is free.
    pub port: u16,
    /// What it does with requests.
    pub mode: Mode,
    /// Its clock.
    pub pace: Arc<dyn Pace>,
}

impl ServerOptions {
    /// Plays `script` on any free port, on the machine's clock.
    pub fn playing(script: Script) -> Self {
        Self {
            port: 0,
            mode: Mode::Play(script),
            pace: Arc::new(SystemPace::default()),
        }
    }
}

/// What a server does with requests.
pub enum Mode {
    /// It judges them and answers as the script says.
    Play(Script),
    /// It hashes their bodies and answers all alike, as cheaply as can be.
    Sink,
}

/// A running server. It ends when this is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<ServerState>,
    _stop: DropGuard,
}

/// What connections share.
pub(crate) struct ServerState {
    /// None in sink mode.
    pub(crate) play: Option<Mutex<Play>>,
    pub(crate) cache: Mutex<PromptCache>,
    pub(crate) limiter: Arc<Mutex<RateLimiter>>,
    pub(crate) record: Arc<Record>,
    pub(crate) pace: Arc<dyn Pace>,
    /// Asks whoever accepts connections to refuse them for a while, and to say when the door is
    /// shut.
    refuse: mpsc::Sender<(Duration, oneshot::Sender<()>)>,
    /// Makes ids unlike those of any other run, so that a conversation can outlive a server.
    run: u64,
    next_id: AtomicU64,
    connections: AtomicU64,
}

impl ServerState {
    fn new(
        mode: Mode,
        pace: Arc<dyn Pace>,
        refuse: mpsc::Sender<(Duration, oneshot::Sender<()>)>,
    ) -> Self {
        let (limiter, play) = match mode {
            Mode::Play(script) => {
                let limiter = RateLimiter::new(script.limits().clone());
                (limiter, Some(Mutex::new(Play::new(script))))
            }
            Mode::Sink => (RateLimiter::default(), None),
        };
        let run = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        Self {
            play,
            cache: Mutex::default(),
            limiter: Arc::new(Mutex::new(limiter)),
            record: Arc::default(),
            pace,
            refuse,
            run,
            next_id: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }
    }

    pub(crate) fn next_id(&self) -> String {
        format!(
            "{:012x}{:06x}",
            self.run >> 16 & 0xffff_ffff_ffff,
            self.next_id.fetch_add(1, Ordering::Relaxed)
        )
    }

    pub(crate) fn cache(&self) -> std::sync::MutexGuard<'_, PromptCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limiter(&self) -> std::sync::MutexGuard<'_, RateLimiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long connections are refused from now on, if an outage says so.
    fn refuses_connections(&self) -> Option<Duration> {
        match self.limiter().outage(self.pace.now()) {
            Some((Reaction::Disconnect, left)) => Some(left),
            _ => None,
        }
    }

    /// Closes the door for a while; ends when it is shut.
    pub(crate) async fn refuse_for(&self, duration: Duration) {
        let (shut, is_shut) = oneshot::channel();
        // Errors mean that the server has stopped accepting: the door is shut for good.
        let _ = self.refuse.send((duration, shut)).await;
        let _ = is_shut.await;
    }
}

impl Server {
    /// Starts a server on the current runtime.
    pub fn start(options: ServerOptions) -> io::Result<Self> {
        let listener = listen(options.port)?;
        let address = listener.local_addr()?;
        let (refuse, refusals) = mpsc::channel(1);
        let shared = Arc::new(ServerState::new(options.mode, options.pace, refuse));
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let door = Door {
            listener,
            refusals,
            shared: Arc::clone(&shared),
            stop: stop.clone(),
        };
        tasks.clone().spawn(door.accept(tasks));
        Ok(Self {
            address,
            shared,
            _stop: stop.drop_guard(),
        })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Base URL for Anthropic clients; OpenAI clients add `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests it has had.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.record.since(0)
    }

    /// Returns what each account and model did with its limits.
    pub fn limits(&self) -> Vec<PairSummary> {
        self.shared.limiter().summary(self.shared.pace.now())
    }

    /// Ends once it has had `count` requests.
    pub async fn wait_for_requests(&self, count: u64) {
        self.shared.record.wait_for(count).await;
    }
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    // The port is bound again after a refusal, while old connections are still in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    socket.listen(4096)
}

/// Where connections come in.
struct Door {
    listener: TcpListener,
    refusals: mpsc::Receiver<(Duration, oneshot::Sender<()>)>,
    shared: Arc<ServerState>,
    stop: CancellationToken,
}

impl Door {
    async fn accept(mut self, tasks: TaskTracker) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                Some((duration, shut)) = self.refusals.recv() => {
                    let tell = move || {
                        // The request that asked may be gone.
                        let _ = shut.send(());
                    };
                    let Ok(door) = self.shut_for(duration, tell).await else { return };
                    self = door;
                }
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else {
                        // Out of file descriptors, most likely: some may be free in a moment.
                        self.shared.pace.sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    if let Some(left) = self.shared.refuses_connections() {
                        // Accepted already, it can only be reset. Those after it are refused.
                        let _ = stream.set_zero_linger();
                        let Ok(door) = self.shut_for(left, move || drop(stream)).await else { return };
                        self = door;
                        continue;
                    }
                    tasks.spawn(connection(stream, Arc::clone(&self.shared), self.stop.clone()));
                }
            }
        }
    }

    /// Refuses connections for a while; calls `on_shut` once it does. An error means that somebody
    /// took the port meanwhile.
    async fn shut_for(self, duration: Duration, on_shut: impl FnOnce()) -> io::Result<Self> {
        let address = self.listener.local_addr()?;
        drop(self.listener);
        // Begun before the answer, so that a test that advances the clock next ends this sleep.
        let waking = self.shared.pace.sleep(duration);
        on_shut();
        tokio::select! {
            () = waking => {}
            () = self.stop.cancelled() => {}
        }
        Ok(Self {
            listener: listen(address.port())?,
            ..self
        })
    }
}

async fn connection(
    stream: tokio::net::TcpStream,
    shared: Arc<ServerState>,
    stop: CancellationToken,
) {
    // Small events must leave at once; if it cannot be set they leave a little later.
    let _ = stream.set_nodelay(true);
    let reset = Arc::new(AtomicBool::new(false));
    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
    let socket = Socket {
        stream,
        reset: Arc::clone(&reset),
    };
    let service = service_fn(|request| {
        answer::answer(request, number, Arc::clone(&shared), Arc::clone(&reset))
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(socket), service);
    tokio::select! {
        () = stop.cancelled() => {}
        // An error is a client that went away, or a fault that the script asked for.
        _ = serving => {}
    }
}
