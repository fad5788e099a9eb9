//! A connection with a server, from its beginning to its end.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use posse_port::clock::Clock;
use posse_port::process::ProcessBoundary;
use posse_port::servers::{ServedPrompt, ServedTool, ServerFacts, ServerTransport};
use reqwest::Url;
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotificationParam, ClientRequest, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion, RequestId, ServerPeerInfo, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError,
    serve_client_with_lifecycle, serve_directly,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::facts::{MOST_TOOLS, ToolPage, introduced, served};
use super::handshake::shake_hands;
use super::http::{HttpServer, MOST_BYTES};
use super::http_fault::HttpFault;
use super::listener::Listener;
use super::listing::list_prompts;
use super::program::{PATIENCE, Program, ProgramWords, with_log};
use super::restarts::{MOST_RESTARTS, pause};
use super::send_fault::{needs_sign_in, root};
use super::stdio::LineTransport;
use super::tail::LogTail;
use super::target::ServerTarget;
use crate::answer::root_cause;
use crate::processes::within;

/// How long a server may take until it has told its tools.
pub(super) const START: Duration = Duration::from_secs(30);
/// How long it may take to send a cancellation.
const CANCEL: Duration = Duration::from_millis(900);
/// How long a program may take to end that has closed its output: how it ends is told then.
const DYING: Duration = Duration::from_millis(500);
/// How long the end of a connection may take.
const CLOSE: Duration = Duration::from_secs(3);
/// How many pages a list of tools has.
const MOST_PAGES: usize = 64;
/// How many abandoned calls wait to be told to the server.
const MOST_ABANDONED: usize = 64;
/// How long after a change the tools are listed again. Doubled as long as changes do not end.
const SETTLE: Duration = Duration::from_millis(20);
const MOST_SETTLE: Duration = Duration::from_secs(1);
/// How long there must be no change for that to begin anew.
const QUIET: Duration = Duration::from_secs(10);

/// What calls need of a connection.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
    /// How many there were before.
    pub(super) number: u64,
    /// Takes calls that nobody waits for any more.
    pub(super) abandoned: mpsc::Sender<RequestId>,
    broken: CancellationToken,
    why_broken: OnceLock<String>,
    fate: watch::Sender<Option<Arc<str>>>,
}

impl Connection {
    /// Says that a call has found it broken.
    pub(super) fn tell_broken(&self, why: String) {
        let _ = self.why_broken.set(why);
        self.broken.cancel();
    }

    /// Says that a request has found it broken, if nothing can be sent any more.
    pub(super) fn tell_if_closed(&self, why: &str) {
        if self.peer.is_transport_closed() {
            self.tell_broken(why.into());
        }
    }

    /// Waits until it has ended, and returns why.
    pub(super) async fn ended(&self) -> Arc<str> {
        let mut fate = self.fate.subscribe();
        let ended = fate.wait_for(Option::is_some).await;
        // The sender is part of this.
        let ended = ended.ok().and_then(|fate| fate.clone());
        ended.unwrap_or_else(|| "it has ended".into())
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct ConnectError {
    pub(super) why: String,
    /// True if another attempt may succeed.
    pub(super) is_passing: bool,
    /// True if somebody has to sign in first.
    pub(super) needs_sign_in: bool,
}

impl ConnectError {
    fn last(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_passing: false,
            needs_sign_in: false,
        }
    }
}

/// A connection that was made.
pub(super) struct LiveConnection {
    pub(super) connection: Arc<Connection>,
    pub(super) facts: ServerFacts,
    service: RunningService<RoleClient, Listener>,
    program: Option<Program>,
    abandoned: mpsc::Receiver<RequestId>,
    /// True if it has lists that can change.
    has_lists: bool,
}

impl LiveConnection {
    /// Connects with a server, once.
    pub(super) async fn connect(target: &ServerTarget, number: u64) -> Result<Self, ConnectError> {
        let starts = target.means.starts(&target.entry.transport);
        // Never closed.
        let _permit = starts.acquire().await;
        target.log.clear();
        match &target.entry.transport {
            ServerTransport::Program { words, variables } => {
                Self::connect_program(target, ProgramWords { words, variables }, number).await
            }
            ServerTransport::Http { url, headers, .. } => {
                let connected = Self::connect_http(target, url, headers, number);
                let connected = within(&*target.place.clock, START, connected).await;
                connected.unwrap_or_else(|| {
                    Err(ConnectError {
                        is_passing: true,
                        ..ConnectError::last(late())
                    })
                })
            }
        }
    }

    async fn connect_program(
        target: &ServerTarget,
        words: ProgramWords<'_>,
        number: u64,
    ) -> Result<Self, ConnectError> {
        let clock = &target.place.clock;
        let processes = &*target.means.processes;
        let started = Program::start(processes, words, &target.place, &target.log).await;
        let (mut program, transport) =
            started.map_err(|error| ConnectError::last(error.to_string()))?;
        let listener = target.listener();
        let greeted = tokio::select! {
            biased;
            greeted = greet(transport, listener.clone(), &**clock) => greeted,
            why = program.lost() => Err(ConnectError::last(why)),
            () = clock.sleep(START) => Err(ConnectError::last(late())),
        };
        match greeted {
            Ok((service, facts)) => Ok(Self::new(service, facts, Some(program), number)),
            Err(error) => Err(ConnectError::last(
                program.end(&error.why, Duration::ZERO).await,
            )),
        }
    }

    async fn connect_http(
        target: &ServerTarget,
        address: &str,
        headers: &[(String, String)],
        number: u64,
    ) -> Result<Self, ConnectError> {
        let url = Url::parse(address).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| ConnectError::last(format!("`{address}` is no address")))?;
        admit(&url, &target.place.boundary).await?;
        let client = target
            .means
            .clients
            .client(&url)
            .map_err(|error| ConnectError::last(error.to_string()))?;
        let server = HttpServer::new(client, &target.entry.name, headers, target.tokens())
            .map_err(|error| ConnectError::last(error.to_string()))?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .max_concurrent_requests(super::MOST_CALLS * 2)
            .max_sse_event_size(MOST_BYTES)
            .reinit_on_expired_session(false);
        config.retry_config = Arc::new(StreamRetry);
        let transport = StreamableHttpClientTransport::with_client(server, config);
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let service = serve_client_with_lifecycle(target.listener(), transport, lifecycle).await;
        let service = service.map_err(|error| refused(&error))?;
        let facts = learned(&service, &target.log, &*target.place.clock).await;
        let facts = facts.map_err(|error| ConnectError {
            why: with_log(error.why, &target.log),
            ..error
        })?;
        Ok(Self::new(service, facts, None, number))
    }

    fn new(
        service: RunningService<RoleClient, Listener>,
        facts: ServerFacts,
        program: Option<Program>,
        number: u64,
    ) -> Self {
        let (abandon, abandoned) = mpsc::channel(MOST_ABANDONED);
        let connection = Connection {
            peer: service.peer().clone(),
            listener: service.service().clone(),
            number,
            abandoned: abandon,
            broken: CancellationToken::new(),
            why_broken: OnceLock::new(),
            fate: watch::Sender::new(None),
        };
        let has_lists = service.peer_info().is_some_and(|info| {
            info.capabilities.tools.is_some() || info.capabilities.prompts.is_some()
        });
        Self {
            connection: Arc::new(connection),
            facts,
            service,
            program,
            abandoned,
            has_lists,
        }
    }

    /// Serves it until it is lost, and returns why.
    pub(super) async fn serve(
        &mut self,
        target: &ServerTarget,
        learn: impl Fn(ServedLists),
    ) -> String {
        let connection = &*self.connection;
        let clock = &*target.place.clock;
        let watch = async {
            if !self.has_lists {
                return std::future::pending().await;
            }
            tokio::select! {
                never = relist(target, connection, &learn) => never,
                never = subscribe(connection, clock) => never,
            }
        };
        let lost = async {
            match &mut self.program {
                Some(program) => program.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            why = lost => why.to_owned(),
            () = connection.broken.cancelled() => {
                connection.why_broken.get().cloned().unwrap_or_default()
            }
            never = tell_abandoned(connection, &mut self.abandoned, clock) => match never {},
            never = watch => match never {},
        }
    }

    /// Ends it. Returns why, for those who still call.
    pub(super) async fn end(mut self, why: String, is_wanted: bool, clock: &dyn Clock) -> Arc<str> {
        let told = match self.program.take() {
            // It has ended, or is about to, or is ended since it cannot be talked with.
            Some(program) if is_wanted => program.end(&why, DYING).await,
            Some(program) => {
                within(clock, CLOSE, self.service.close()).await;
                program.end(&why, PATIENCE).await
            }
            None => why,
        };
        let told: Arc<str> = told.into();
        self.connection.fate.send_replace(Some(Arc::clone(&told)));
        within(clock, CLOSE, self.service.close()).await;
        told
    }
}

fn late() -> String {
    format!("it did not answer within {} s", START.as_secs())
}

/// Waits until the host of a server is allowed.
async fn admit(url: &Url, boundary: &ProcessBoundary) -> Result<(), ConnectError> {
    let ProcessBoundary::Sandbox(bounds) = boundary else {
        return Ok(());
    };
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']);
    let port = url.port_or_known_default().unwrap_or_default();
    let admitted = bounds.hosts.admit(host, port).await;
    admitted.map_err(|refused| ConnectError::last(format!("{host}: {refused}")))
}

/// Agrees with a program, and asks for its tools.
async fn greet(
    mut transport: LineTransport,
    listener: Listener,
    clock: &dyn Clock,
) -> Result<(RunningService<RoleClient, Listener>, ServerFacts), ConnectError> {
    let log = listener.log();
    let agreed = shake_hands(&mut transport, clock, &Listener::introduction()).await;
    let info: ServerPeerInfo = agreed.map_err(|error| ConnectError::last(error.to_string()))?;
    let service = serve_directly(listener, transport, Some(info));
    let facts = learned(&service, &log, clock).await?;
    Ok((service, facts))
}

/// Returns what a server says of itself and what it has.
async fn learned(
    service: &RunningService<RoleClient, Listener>,
    log: &LogTail,
    clock: &dyn Clock,
) -> Result<ServerFacts, ConnectError> {
    let info = service.peer_info();
    let info = info.ok_or_else(|| ConnectError::last("it did not say who it is"))?;
    let lists = list(service.peer(), log, clock).await?;
    Ok(ServerFacts {
        tools: lists.tools,
        prompts: lists.prompts.unwrap_or_default(),
        ..introduced(&info)
    })
}

/// What a server has, as it was listed.
pub(super) struct ServedLists {
    pub(super) tools: Vec<ServedTool>,
    /// None if they could not be listed.
    pub(super) prompts: Option<Vec<ServedPrompt>>,
}

/// Asks for tools and prompts. Without its prompts a server can be used.
async fn list(
    peer: &Peer<RoleClient>,
    log: &LogTail,
    clock: &dyn Clock,
) -> Result<ServedLists, ConnectError> {
    let has_tools = peer
        .peer_info()
        .is_some_and(|info| info.capabilities.tools.is_some());
    let tools = match has_tools {
        true => list_tools(peer, log).await?,
        false => Vec::new(),
    };
    let prompts = list_prompts(peer, clock).await;
    if let Err(failure) = &prompts {
        log.note(&format!("its prompts cannot be listed: {failure}"));
    }
    Ok(ServedLists {
        tools,
        prompts: prompts.ok(),
    })
}

/// Asks for all tools, page by page.
async fn list_tools(
    peer: &Peer<RoleClient>,
    log: &LogTail,
) -> Result<Vec<ServedTool>, ConnectError> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest {
            method: Default::default(),
            params: Some(params),
            extensions: Default::default(),
        });
        let answer = peer.send_request(request).await;
        let answer = answer.map_err(|error| ConnectError {
            needs_sign_in: needs_sign_in(&error),
            ..ConnectError::last(format!("its tools cannot be listed: {}", root(&error)))
        })?;
        let page = ToolPage::read(answer)
            .ok_or_else(|| ConnectError::last("its list of tools cannot be read"))?;
        page.broken.iter().for_each(|broken| log.note(broken));
        tools.extend(page.tools);
        let next = page
            .next
            .filter(|next| !next.is_empty() && cursor.as_ref() != Some(next));
        match next {
            Some(next) if tools.len() < MOST_TOOLS => cursor = Some(next),
            Some(_) => {
                log.note("it has more tools than are listed");
                break;
            }
            None => break,
        }
    }
    Ok(served(tools))
}

/// Lists what the server has whenever it has changed.
async fn relist(
    target: &ServerTarget,
    connection: &Connection,
    learn: &impl Fn(ServedLists),
) -> Infallible {
    let clock = &*target.place.clock;
    let mut settle = SETTLE;
    let mut last: Option<Duration> = None;
    loop {
        connection.listener.changed().await;
        let is_quiet = last.is_none_or(|last| clock.now().saturating_sub(last) >= QUIET);
        settle = if is_quiet {
            SETTLE
        } else {
            (settle * 2).min(MOST_SETTLE)
        };
        clock.sleep(settle).await;
        let changes = connection.listener.changes();
        let listed = list(&connection.peer, &target.log, clock);
        match within(clock, START, listed).await {
            Some(Ok(lists)) => learn(lists),
            Some(Err(error)) => target.log.note(&error.why),
            None => target.log.note("its tools were not listed in time"),
        }
        connection.listener.tell_listed(changes);
        last = Some(clock.now());
    }
}

/// Hears of changes from servers that tell them only to those who ask.
async fn subscribe(connection: &Connection, clock: &dyn Clock) -> Infallible {
    let info = connection.peer.peer_info();
    let (tools, prompts) = info.as_ref().map_or((false, false), |info| {
        let tools = info.capabilities.tools.as_ref();
        let prompts = info.capabilities.prompts.as_ref();
        (
            tools.is_some_and(|it| it.list_changed == Some(true)),
            prompts.is_some_and(|it| it.list_changed == Some(true)),
        )
    });
    let is_modern = info.is_some_and(|info| !info.protocol_version.has_initialize());
    let is_told = is_modern && (tools || prompts);
    let mut failures = 0;
    while is_told && failures <= MOST_RESTARTS {
        let mut filter = SubscriptionFilter::builder();
        if tools {
            filter = filter.tools_list_changed();
        }
        if prompts {
            filter = filter.prompts_list_changed();
        }
        match connection.peer.listen(filter.build()).await {
            Ok(mut changes) => {
                if failures > 0 {
                    // What has changed meanwhile was not told.
                    connection.listener.tell_changed();
                }
                failures = 0;
                while let Ok(Some(_)) = changes.next().await {
                    connection.listener.tell_changed();
                }
            }
            Err(ServiceError::McpError(_)) => break,
            Err(_) => {}
        }
        clock.sleep(pause(failures)).await;
        failures += 1;
    }
    std::future::pending().await
}

/// Tells the server of calls that nobody waits for any more.
async fn tell_abandoned(
    connection: &Connection,
    abandoned: &mut mpsc::Receiver<RequestId>,
    clock: &dyn Clock,
) -> Infallible {
    while let Some(id) = abandoned.recv().await {
        cancel(connection, id, clock).await;
    }
    std::future::pending().await
}

/// Tells the server that a call is cancelled.
pub(super) async fn cancel(connection: &Connection, id: RequestId, clock: &dyn Clock) {
    let why = Some("nobody waits for it any more".to_owned());
    let told = CancelledNotificationParam::new(Some(id), why);
    within(clock, CANCEL, connection.peer.notify_cancelled(told)).await;
}

/// Returns why a server over HTTP was not agreed with.
fn refused(error: &ClientInitializeError) -> ConnectError {
    let sent = match error {
        ClientInitializeError::TransportError { error, .. } => Some(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return refused(fallback),
        _ => None,
    };
    let source = sent.map(|sent| &*sent.error);
    let fault = source.and_then(|it| it.downcast_ref::<StreamableHttpError<HttpFault>>());
    match fault {
        Some(StreamableHttpError::Client(fault)) => ConnectError {
            why: fault.to_string(),
            is_passing: fault.is_passing(),
            needs_sign_in: fault.needs_sign_in(),
        },
        Some(fault) => ConnectError::last(root_cause(fault)),
        None => ConnectError::last(root_cause(error)),
    }
}

/// How often a stream of events is opened again.
#[derive(Debug)]
struct StreamRetry;

impl SseRetryPolicy for StreamRetry {
    fn retry(&self, failures: usize) -> Option<Duration> {
        (failures < MOST_RESTARTS).then(|| pause(failures))
    }
}
