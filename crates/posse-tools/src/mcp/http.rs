//! Messages over HTTP, with posse's own client.

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::http_events::EventBody;
use super::http_fault::HttpFault;
use super::oauth::{Challenge, Token, TokenSource};
use crate::answer::clip;

/// The largest answer, and the largest event of a stream.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// How much of a refusal is read, and how much is told.
const REFUSAL_READ: usize = 64 << 10;
const REFUSAL_TOLD: usize = 500;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const EITHER: &str = "application/json, text/event-stream";

type Events = futures_core::stream::BoxStream<'static, Result<Sse, SseError>>;
type Failed = StreamableHttpError<HttpFault>;
type MoreHeaders = HashMap<HeaderName, HeaderValue>;

/// A header that cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("the header `{0}` cannot be sent")]
pub(super) struct HeaderFault(String);

/// A server over HTTP.
#[derive(Clone)]
pub(super) struct HttpServer {
    client: Client,
    /// Headers of each request.
    headers: Arc<HeaderMap>,
    /// Its name.
    name: String,
    /// Gives the token; none if nobody signs in.
    tokens: Option<TokenSource>,
}

impl HttpServer {
    /// Returns a server whose requests have these headers.
    pub(super) fn new(
        client: Client,
        name: &str,
        headers: &[(String, String)],
        tokens: Option<TokenSource>,
    ) -> Result<Self, HeaderFault> {
        let fault = |name: &String| HeaderFault(name.clone());
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let key = HeaderName::try_from(name).map_err(|_| fault(name))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| fault(name))?;
            value.set_sensitive(true);
            all.append(key, value);
        }
        Ok(Self {
            client,
            headers: Arc::new(all),
            name: name.to_owned(),
            tokens,
        })
    }

    fn request(
        &self,
        method: Method,
        url: &str,
        session: Option<&str>,
        more: MoreHeaders,
    ) -> RequestBuilder {
        let mut headers = (*self.headers).clone();
        headers.extend(more.into_iter().map(|(name, value)| (Some(name), value)));
        let mut request = self.client.request(method, url).headers(headers);
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        request
    }

    /// Sends a request, with a token if somebody has signed in. One whose token is refused has not been
    /// answered: it is sent again with a new one, once.
    async fn sent(&self, request: RequestBuilder) -> Result<Response, Failed> {
        let Some(tokens) = &self.tokens else {
            return send(request).await;
        };
        let again = request.try_clone();
        let token = tokens.token().await;
        let mut answer = send(signed(request, token.as_ref())).await?;
        if answer.status() == StatusCode::UNAUTHORIZED
            && let (Some(token), Some(again)) = (&token, again)
            && let Some(renewed) = tokens.renewed(token).await
        {
            answer = send(signed(again, Some(&renewed))).await?;
        }
        let challenge = Challenge::of(answer.headers());
        let server = self.name.clone();
        match answer.status() {
            StatusCode::UNAUTHORIZED => Err(fault(HttpFault::NoSignIn { server })),
            StatusCode::FORBIDDEN if token.is_some() => match challenge.missing_scopes() {
                Some(scopes) => {
                    let wanted = scopes.join(" ");
                    Err(fault(match tokens.want(scopes).await {
                        true => HttpFault::TooLittle { wanted, server },
                        false => HttpFault::NotEnough { wanted },
                    }))
                }
                None => Ok(answer),
            },
            _ => Ok(answer),
        }
    }
}

fn signed(request: RequestBuilder, token: Option<&Token>) -> RequestBuilder {
    match token {
        Some(token) => request.bearer_auth(token.expose()),
        None => request,
    }
}

async fn send(request: RequestBuilder) -> Result<Response, Failed> {
    request.send().await.map_err(|error| fault(error.into()))
}

fn fault(fault: HttpFault) -> Failed {
    StreamableHttpError::Client(fault)
}

fn has_type(response: &Response, kind: &str) -> bool {
    let found = response.headers().get(CONTENT_TYPE);
    found.is_some_and(|it| {
        it.as_bytes()
            .to_ascii_lowercase()
            .starts_with(kind.as_bytes())
    })
}

/// Reads a body of at most `most` bytes.
async fn body(response: &mut Response, most: usize) -> Result<Vec<u8>, HttpFault> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        body.extend_from_slice(&piece);
        if body.len() > most {
            return Err(HttpFault::TooLong);
        }
    }
    Ok(body)
}

fn events(response: Response) -> Events {
    let body = EventBody::new(response.into(), MOST_BYTES);
    Box::pin(SseStream::new(body))
}

/// Reads a refusal. One that has the form of a message is the server's own word.
async fn refused(
    mut response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, Failed> {
    let status = response.status();
    let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let body = body(&mut response, REFUSAL_READ).await.unwrap_or_default();
    let error = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) if !is_denied => Some(error),
        _ => None,
    };
    let body = String::from_utf8_lossy(&body);
    let body = clip(body.trim(), REFUSAL_TOLD).to_owned();
    let request = match message {
        ClientJsonRpcMessage::Request(request) => Some(request),
        _ => None,
    };
    let of_discovery = request.filter(|request| {
        let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
        is_discovery && !has_session && status.is_client_error() && !is_denied
    });
    if let Some(request) = of_discovery {
        // A server of the older era: its error need not name the request.
        let error = error.map_or_else(
            || ErrorData::invalid_request(format!("HTTP {status}: {body}"), None),
            |error| error.error,
        );
        let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    if let (Some(mut error), Some(request)) = (error, request) {
        error.id.get_or_insert_with(|| request.id.clone());
        let error = ServerJsonRpcMessage::Error(error);
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    Err(fault(HttpFault::Status {
        status: status.as_u16(),
        body,
    }))
}

/// Returns an answer. A server of the older era that has an empty result for every method it does not
/// know has not discovered anything: it refuses, as others do.
fn discovered(
    message: &ClientJsonRpcMessage,
    answer: ServerJsonRpcMessage,
) -> ServerJsonRpcMessage {
    let (ClientJsonRpcMessage::Request(request), ServerJsonRpcMessage::Response(response)) =
        (message, &answer)
    else {
        return answer;
    };
    let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
    if !is_discovery || matches!(response.result, ServerResult::DiscoverResult(_)) {
        return answer;
    }
    let error = ErrorData::invalid_request("its answer to server/discover says nothing", None);
    ServerJsonRpcMessage::error(error, Some(request.id.clone()))
}

impl StreamableHttpClient for HttpServer {
    type Error = HttpFault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: MoreHeaders,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let session = session_id.as_deref();
        let request = self.request(Method::POST, &uri, session, custom_headers);
        let request = request.header(ACCEPT, EITHER).header(CONTENT_TYPE, JSON);
        let mut response = self
            .sent(request.body(serde_json::to_vec(&message)?))
            .await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return refused(response, &message, session_id.is_some()).await;
        }
        let session = response.headers().get(SESSION);
        let session = session.and_then(|it| it.to_str().ok()).map(str::to_owned);
        if has_type(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(response), session));
        }
        let body = body(&mut response, MOST_BYTES).await.map_err(fault)?;
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        match serde_json::from_slice(&body) {
            Ok(answer) => {
                let answer = discovered(&message, answer);
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            Err(_) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => {
                let body = String::from_utf8_lossy(&body);
                let told = format!("{error}: {}", clip(&body, REFUSAL_TOLD));
                Err(fault(HttpFault::Unreadable(told)))
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: MoreHeaders,
    ) -> Result<(), Failed> {
        // A server need not let sessions be ended.
        let request = self.request(Method::DELETE, &uri, Some(&session_id), custom_headers);
        self.sent(request).await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: MoreHeaders,
    ) -> Result<Events, Failed> {
        let session = session_id.as_deref();
        let mut request = self.request(Method::GET, &uri, session, custom_headers);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, last);
        }
        let response = self.sent(request.header(ACCEPT, EVENTS)).await?;
        let status = response.status();
        if status.is_client_error() || status.is_success() && !has_type(&response, EVENTS) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(fault(HttpFault::Status {
                status: status.as_u16(),
                body: String::new(),
            }));
        }
        Ok(events(response))
    }
}
