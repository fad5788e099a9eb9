//! A call of a server's tool. One that may have arrived is never made again.

use std::sync::Arc;
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::clock::Clock;
use posse_port::servers::{ServerAnswer, ServerCall, ServerFailure, ServerTransport};
use posse_protocol::ElicitationReply;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequest,
    InputRequiredResult, InputResponses, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};

use super::connection::{Connection, cancel};
use super::content::{answered, read_loosely};
use super::elicitation::{elicitation, elicited};
use super::kept_server::KeptServer;
use super::listener::ProgressGuard;
use super::open_calls::OpenCall;
use super::send_fault::{SendFault, send_fault};
use crate::processes::within;

/// How long a call may take if its entry does not say.
const LIMIT: Duration = Duration::from_secs(28 * 60 * 60);
/// How long it may make no progress.
const PROGRAM_IDLE: Duration = Duration::from_secs(30 * 60);
const HTTP_IDLE: Duration = Duration::from_secs(5 * 60);
/// How long it may take until it is known how a connection has ended.
const FATE: Duration = Duration::from_secs(3);
/// How often a server may ask for more before it answers.
const MOST_ROUNDS: usize = 10;

/// Makes a call.
pub(super) async fn make_call(
    core: &KeptServer,
    call: ServerCall,
) -> Result<ServerAnswer, ServerFailure> {
    let params = params(&call)?;
    let stopped = || ServerFailure::NotCalled("it was stopped before".into());
    let _slot = tokio::select! {
        biased;
        () = call.cancel.cancelled() => return Err(stopped()),
        slot = core.slots.take(&call.path) => slot,
    };
    let mut is_retry = false;
    loop {
        let connection = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(stopped()),
            connection = core.connected() => connection?,
        };
        match ask(core, &connection, &call, params.clone()).await {
            Ok(result) => {
                let longest = core.longest(&call.tool);
                let mut answer = answered(result, longest, call.overflow.as_deref()).await;
                answer.restarted = core.is_anew(&call.path, connection.number);
                return Ok(answer);
            }
            Err(CallFault::Final(failure)) => return Err(failure),
            // The server has not got it: once more, with a new connection.
            Err(CallFault::NotSent(why)) => {
                connection.tell_broken(why.clone());
                if std::mem::replace(&mut is_retry, true) {
                    return Err(ServerFailure::NotCalled(why));
                }
                tokio::select! {
                    biased;
                    () = call.cancel.cancelled() => return Err(stopped()),
                    _ = connection.ended() => {}
                }
            }
        }
    }
}

/// Why a call has no answer.
enum CallFault {
    /// The server has not got it.
    NotSent(String),
    Final(ServerFailure),
}

impl From<ServerFailure> for CallFault {
    fn from(failure: ServerFailure) -> Self {
        Self::Final(failure)
    }
}

fn params(call: &ServerCall) -> Result<CallToolRequestParams, ServerFailure> {
    let input = serde_json::from_str(call.input.get());
    let input = input.map_err(|_| ServerFailure::NotCalled("its input is not an object".into()))?;
    Ok(CallToolRequestParams::new(call.tool.clone()).with_arguments(input))
}

/// Makes a call with a connection, and gives the server what it asks for meanwhile.
async fn ask(
    core: &KeptServer,
    connection: &Arc<Connection>,
    call: &ServerCall,
    mut params: CallToolRequestParams,
) -> Result<CallToolResult, CallFault> {
    let mut bounds = CallBounds::of(core);
    for round in 0..MOST_ROUNDS {
        let sent = SentCall::send(connection, call, params.clone()).await;
        let mut sent = sent.map_err(|fault| fault.after(round))?;
        let answer = sent.answer(&mut bounds, call).await;
        let is_given_up = matches!(
            answer,
            Err(CallFault::Final(
                ServerFailure::TimedOut(_) | ServerFailure::Stopped
            ))
        );
        sent.finish(is_given_up, &*bounds.clock).await;
        match answer.map_err(|fault| fault.after(round))? {
            ServerResult::CallToolResult(result) => return Ok(result),
            ServerResult::InputRequiredResult(wanted) => {
                params.request_state.clone_from(&wanted.request_state);
                let responses = responses(core, connection, call, wanted);
                let responses = tokio::select! {
                    biased;
                    () = call.cancel.cancelled() => return Err(ServerFailure::Stopped.into()),
                    () = &mut bounds.over => {
                        return Err(ServerFailure::TimedOut(bounds.limit).into());
                    }
                    responses = responses => responses,
                };
                params.input_responses = Some(responses);
            }
            ServerResult::CustomResult(result) => {
                let result = read_loosely(result.0);
                return result.ok_or_else(|| refused("its answer cannot be read").into());
            }
            ServerResult::CreateTaskResult(_) => {
                return Err(refused("it answers with a task, which posse does not follow").into());
            }
            // An answer without content.
            ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => {
                return Ok(CallToolResult::success(Vec::new()));
            }
            _ => return Err(refused("its answer is that of another request").into()),
        }
    }
    Err(refused("it asks for more again and again").into())
}

/// How long a call may take.
struct CallBounds {
    clock: Arc<dyn Clock>,
    limit: Duration,
    over: BoxFuture<'static, ()>,
    /// How long it may make no progress.
    idle: Duration,
}

impl CallBounds {
    fn of(core: &KeptServer) -> Self {
        let clock = Arc::clone(&core.target.place.clock);
        let limit = core.target.entry.call_limit.unwrap_or(LIMIT);
        let idle = match &core.target.entry.transport {
            ServerTransport::Program { .. } => PROGRAM_IDLE,
            ServerTransport::Http { .. } => HTTP_IDLE,
        };
        Self {
            over: clock.sleep(limit),
            limit,
            // Somebody who says how long calls take knows that they may be silent.
            idle: idle.max(core.target.entry.call_limit.unwrap_or_default()),
            clock,
        }
    }
}

impl CallFault {
    /// Once the server has asked for more, it may have done something.
    fn after(self, round: usize) -> Self {
        match self {
            Self::NotSent(why) if round > 0 => ServerFailure::Lost(why).into(),
            fault => fault,
        }
    }
}

fn refused(why: &str) -> ServerFailure {
    ServerFailure::Refused {
        code: 0,
        message: why.into(),
    }
}

/// Answers what a server asks before it goes on: where work is done, and what only a person knows.
async fn responses(
    core: &KeptServer,
    connection: &Connection,
    call: &ServerCall,
    wanted: InputRequiredResult,
) -> InputResponses {
    let mut responses = InputResponses::new();
    for (name, request) in wanted.input_requests.unwrap_or_default() {
        let response = match request {
            InputRequest::ListRoots(_) => serde_json::to_value(connection.listener.roots()),
            InputRequest::Elicitation(request) => {
                let asked = elicitation(&core.target.entry.name, request.params);
                let reply = match asked {
                    Some(asked) => call.asker.ask(asked).await,
                    None => ElicitationReply::Decline,
                };
                serde_json::to_value(elicited(reply))
            }
            _ => Ok(serde_json::json!({"error": {"code": -32601, "message": "not supported"}})),
        };
        responses.insert(name, response.unwrap_or_default());
    }
    responses
}

/// A call that was handed over. Dropped, the server is told that nobody waits for it any more.
struct SentCall<'a> {
    connection: &'a Connection,
    handle: RequestHandle<RoleClient>,
    progress: ProgressGuard,
    /// Whom the server reaches as long as the call is open.
    open: OpenCall,
    is_open: bool,
}

impl<'a> SentCall<'a> {
    async fn send(
        connection: &'a Connection,
        call: &ServerCall,
        params: CallToolRequestParams,
    ) -> Result<Self, CallFault> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let handle = connection.peer.send_request_with_option(request, options);
        let handle = handle
            .await
            .map_err(|_| CallFault::NotSent("its connection was closed".into()))?;
        let token = handle.progress_token.clone();
        Ok(Self {
            connection,
            progress: connection.listener.follow(token, call.output.clone()),
            open: connection.listener.open_call(call),
            handle,
            is_open: true,
        })
    }

    async fn answer(
        &mut self,
        bounds: &mut CallBounds,
        call: &ServerCall,
    ) -> Result<ServerResult, CallFault> {
        let clock = Arc::clone(&bounds.clock);
        let mut idle = clock.sleep(bounds.idle);
        loop {
            tokio::select! {
                biased;
                answer = &mut self.handle.rx => return self.read(answer.ok(), &*clock).await,
                () = call.cancel.cancelled() => return Err(ServerFailure::Stopped.into()),
                () = &mut bounds.over => return Err(ServerFailure::TimedOut(bounds.limit).into()),
                () = &mut idle, if !self.open.is_asking() => return Err(ServerFailure::TimedOut(bounds.idle).into()),
                // A person may take long.
                () = self.open.answered() => idle = clock.sleep(bounds.idle),
                () = self.progress.progress.moved.notified() => {
                    idle = clock.sleep(bounds.idle);
                }
                why = self.connection.ended() => {
                    // Its last word may be the answer.
                    return match self.handle.rx.try_recv() {
                        Ok(answer) => self.read(Some(answer), &*clock).await,
                        Err(_) => Err(ServerFailure::Lost(why.to_string()).into()),
                    };
                }
            }
        }
    }

    async fn read(
        &self,
        answer: Option<Result<ServerResult, ServiceError>>,
        clock: &dyn Clock,
    ) -> Result<ServerResult, CallFault> {
        let failure = match answer {
            Some(Ok(result)) => return Ok(result),
            Some(Err(ServiceError::McpError(error))) => ServerFailure::Refused {
                code: error.code.0.into(),
                message: error.message.into_owned(),
            },
            Some(Err(ServiceError::TransportSend(error))) => match send_fault(&error) {
                SendFault::NotSent(why) => return Err(CallFault::NotSent(why)),
                SendFault::Expired => {
                    return Err(CallFault::NotSent("its session has expired".into()));
                }
                SendFault::Refused { status, why } => ServerFailure::Refused {
                    code: status.into(),
                    message: why,
                },
                SendFault::Unknown(why) => ServerFailure::Lost(why),
            },
            Some(Err(ServiceError::Cancelled { .. })) => ServerFailure::Stopped,
            Some(Err(ServiceError::TransportClosed)) | None => self.lost(clock).await,
            Some(Err(error)) => ServerFailure::Lost(error.to_string()),
        };
        Err(failure.into())
    }

    /// Returns why its answer does not come any more.
    async fn lost(&self, clock: &dyn Clock) -> ServerFailure {
        let closed = "its connection was closed";
        if !self.connection.peer.is_transport_closed() {
            return ServerFailure::Lost(closed.into());
        }
        self.connection.tell_broken(closed.into());
        let ended = within(clock, FATE, self.connection.ended()).await;
        ServerFailure::Lost(ended.map_or_else(|| closed.into(), |why| why.to_string()))
    }

    /// Tells the server that nobody waits any more, if nobody does.
    async fn finish(mut self, is_given_up: bool, clock: &dyn Clock) {
        if is_given_up {
            cancel(self.connection, self.handle.id.clone(), clock).await;
        }
        self.is_open = false;
    }
}

impl Drop for SentCall<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // If too many wait to be told, the server finds out by itself.
            let _ = self.connection.abandoned.try_send(self.handle.id.clone());
        }
    }
}
