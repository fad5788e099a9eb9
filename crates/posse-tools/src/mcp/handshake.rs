//! Finds out which era of the protocol a program speaks, without a wait for either.
//!
//! Servers up to 2025-11-25 begin with `initialize`, those since 2026-07-28 with `server/discover`.
//! docs/decisions/2026-11-19-mcp-which-era-first.md says why `initialize` is sent first.

use std::time::Duration;

use posse_port::clock::Clock;
use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult,
    DiscoverRequest, DiscoverRequestParams, ErrorData, InitializeRequest, InitializedNotification,
    ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerPeerInfo,
    ServerRequest, ServerResult,
};
use rmcp::transport::Transport;

/// How long a server may say nothing before it is asked for the other era, too.
const SILENCE: Duration = Duration::from_secs(5);
/// The ids of the requests. Those of later ones count from 0.
const INITIALIZE: RequestId = RequestId::Number(1 << 30);
const AGAIN: RequestId = RequestId::Number((1 << 30) + 1);
const DISCOVER: RequestId = RequestId::Number((1 << 30) + 2);

/// Versions without `initialize`, the preferred one first.
const MODERN: [ProtocolVersion; 1] = [ProtocolVersion::V_2026_07_28];

/// Why a server was not agreed with.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    /// Nothing can be sent or comes any more.
    #[error("it has ended before it answered")]
    Closed,
    /// It refuses both eras.
    #[error("it refuses to begin: {} ({})", .0.message, .0.code.0)]
    Refused(ErrorData),
    /// It speaks none of posse's versions.
    #[error("it speaks {}, and posse does not", .0.join(", "))]
    Versions(Vec<String>),
}

/// Agrees with a program on a version.
pub(super) async fn shake_hands<T: Transport<RoleClient>>(
    transport: &mut T,
    clock: &dyn Clock,
    config: &ClientConfig,
) -> Result<ServerPeerInfo, HandshakeError> {
    send(transport, initialize(config, INITIALIZE)).await?;
    let mut handshake = Handshake::default();
    let mut silence = clock.sleep(SILENCE);
    let mut is_patient = true;
    loop {
        let message = tokio::select! {
            biased;
            message = transport.receive() => message.ok_or(HandshakeError::Closed)?,
            () = &mut silence, if is_patient => {
                is_patient = false;
                if handshake.begin_discovery() {
                    send(transport, discover(config)).await?;
                }
                continue;
            }
        };
        match handshake.hear(message) {
            HandshakeStep::Nothing => {}
            HandshakeStep::Pong(id) => {
                send(
                    transport,
                    ClientJsonRpcMessage::response(ClientResult::empty(()), id),
                )
                .await?;
            }
            HandshakeStep::Again(version) => {
                let config = config.clone().with_protocol_version(version);
                send(transport, initialize(&config, AGAIN)).await?;
            }
            HandshakeStep::Discover => send(transport, discover(config)).await?,
            HandshakeStep::Agreed(info) => {
                if info.protocol_version.has_initialize() {
                    send(transport, initialized()).await?;
                }
                return Ok(*info);
            }
            HandshakeStep::Failed(error) => return Err(error),
        }
    }
}

/// How far it is.
#[derive(Debug, Default)]
struct Handshake {
    has_tried_again: bool,
    is_discovering: bool,
    /// Why `initialize` was refused.
    refused: Option<ErrorData>,
    /// Why `server/discover` was refused.
    not_discovered: Option<ErrorData>,
}

/// What is to be done about a message.
#[derive(Debug)]
enum HandshakeStep {
    Nothing,
    Pong(RequestId),
    Again(ProtocolVersion),
    Discover,
    Agreed(Box<ServerPeerInfo>),
    Failed(HandshakeError),
}

impl Handshake {
    /// Returns true if the other era has not been asked for yet.
    fn begin_discovery(&mut self) -> bool {
        !std::mem::replace(&mut self.is_discovering, true)
    }

    fn hear(&mut self, message: ServerJsonRpcMessage) -> HandshakeStep {
        match message {
            ServerJsonRpcMessage::Response(response) => match response.result {
                ServerResult::InitializeResult(result) => {
                    HandshakeStep::Agreed(Box::new(result.into()))
                }
                ServerResult::DiscoverResult(result) => {
                    let supported = &result.supported_versions;
                    match MODERN.iter().find(|it| supported.contains(it)) {
                        Some(version) => HandshakeStep::Agreed(Box::new(
                            ServerPeerInfo::from_discover_result(version.clone(), result),
                        )),
                        None => {
                            let versions = supported.iter().map(ToString::to_string).collect();
                            HandshakeStep::Failed(HandshakeError::Versions(versions))
                        }
                    }
                }
                _ => HandshakeStep::Nothing,
            },
            ServerJsonRpcMessage::Error(error) => self.refuse(error.id, error.error),
            ServerJsonRpcMessage::Request(request)
                if matches!(request.request, ServerRequest::PingRequest(_)) =>
            {
                HandshakeStep::Pong(request.id)
            }
            _ => HandshakeStep::Nothing,
        }
    }

    /// One of the requests was refused. Servers that cannot read a request name none.
    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) -> HandshakeStep {
        let of_discovery = match id {
            Some(id) if id == DISCOVER => true,
            Some(id) if id == INITIALIZE || id == AGAIN => false,
            Some(_) => return HandshakeStep::Nothing,
            None => self.refused.is_some(),
        };
        if of_discovery {
            self.not_discovered = Some(error);
        } else {
            let older = older_version(&error).filter(|_| !self.has_tried_again);
            if let Some(version) = older {
                self.has_tried_again = true;
                return HandshakeStep::Again(version);
            }
            self.refused = Some(error);
        }
        if self.refused.is_some() && self.begin_discovery() {
            return HandshakeStep::Discover;
        }
        match (&self.refused, &self.not_discovered) {
            (Some(refused), Some(_)) => {
                HandshakeStep::Failed(HandshakeError::Refused(refused.clone()))
            }
            _ => HandshakeStep::Nothing,
        }
    }
}

/// Returns a version with `initialize` that a refusal names.
fn older_version(error: &ErrorData) -> Option<ProtocolVersion> {
    let supported = error.data.as_ref()?.get("supported")?.clone();
    let supported: Vec<ProtocolVersion> = serde_json::from_value(supported).ok()?;
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().rev();
    let mut older = known.filter(|it| it.has_initialize() && **it != ProtocolVersion::V_2025_11_25);
    older.find(|version| supported.contains(version)).cloned()
}

async fn send<T: Transport<RoleClient>>(
    transport: &mut T,
    message: ClientJsonRpcMessage,
) -> Result<(), HandshakeError> {
    let sent = transport.send(message).await;
    sent.map_err(|_| HandshakeError::Closed)
}

fn initialize(config: &ClientConfig, id: RequestId) -> ClientJsonRpcMessage {
    let request = InitializeRequest::new(config.clone());
    ClientJsonRpcMessage::request(ClientRequest::InitializeRequest(request), id)
}

fn initialized() -> ClientJsonRpcMessage {
    let told = InitializedNotification::default();
    ClientJsonRpcMessage::notification(ClientNotification::InitializedNotification(told))
}

fn discover(config: &ClientConfig) -> ClientJsonRpcMessage {
    let mut request = DiscoverRequest::new(DiscoverRequestParams {});
    let [version] = MODERN;
    let (posse, capabilities) = (config.client_info.clone(), config.capabilities.clone());
    let meta = RequestMetaObject::with_client_context(version, posse, capabilities);
    request.extensions.insert(meta);
    ClientJsonRpcMessage::request(ClientRequest::DiscoverRequest(request), DISCOVER)
}
