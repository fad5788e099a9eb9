//! Sends a request and follows its reply: single attempts, and the loop that retries them. The
//! governor lets each attempt pass.

mod rope_body;

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use posse_port::clock::Clock;
use posse_port::model::{Attribution, Body, Call, Failure, ModelError, ModelEvent, Reply};
use posse_protocol::{ContentBlock, Usage};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use crate::address::is_local;
use crate::dialect::{Assembly, Dialect, Listener, garbled};
use crate::governor::{Account, AccountKey, Ask, Governor, Permit};
use crate::response::retry_after;
use crate::retry::Tries;
use crate::sse::Decoder;

/// Maximum size of an error's body that is read.
const ERROR_BODY_LIMIT: usize = 64 << 10;
/// Maximum time to wait for an error's body.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);

/// Bytes of a request that are about one token.
const TOKEN_BYTES: usize = 4;

/// No reply is this large; a stream that exceeds it is garbled.
const REPLY_LIMIT: u64 = 64 << 20;

/// Time that the end of a stream may lag behind its last event. Only a connection that was read
/// to its end can be reused.
const END_WAIT: Duration = Duration::from_millis(20);

/// A provider's address and credential.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The base URL, as the provider's documentation gives it.
    pub base_url: String,
    /// The credential.
    pub auth: Auth,
}

/// How a request is authenticated.
#[derive(Clone, Debug)]
pub enum Auth {
    /// `Authorization: Bearer …`.
    Bearer(SecretString),
    /// `x-api-key: …`.
    ApiKey(SecretString),
}

impl Auth {
    /// Returns the header with the credential.
    pub fn header(&self) -> Result<(HeaderName, HeaderValue), SetupError> {
        Ok(match self {
            Self::Bearer(key) => (
                AUTHORIZATION,
                secret(&format!("Bearer {}", key.expose_secret()))?,
            ),
            Self::ApiKey(key) => (
                HeaderName::from_static("x-api-key"),
                secret(key.expose_secret())?,
            ),
        })
    }
}

/// Why an adapter could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The base URL is invalid.
    #[error("`{url}` is not a valid base URL")]
    BadUrl {
        /// As given.
        url: String,
    },
    /// The credential cannot be put in a header.
    #[error("the API key contains invalid characters")]
    BadKey,
    /// The HTTP client did not start.
    #[error("the HTTP client did not start")]
    Http(#[from] reqwest::Error),
}

/// A provider's endpoint, ready to be called. Cheap to clone; connections are shared.
#[derive(Clone)]
pub struct Connection {
    http: reqwest::Client,
    base_url: Arc<str>,
    auth: (HeaderName, HeaderValue),
    governor: Governor,
}

impl Connection {
    /// Prepares to call `endpoint` whenever `governor` lets a request pass. Nothing is sent yet.
    pub fn new(endpoint: &Endpoint, governor: Governor) -> Result<Self, SetupError> {
        let bad_url = || SetupError::BadUrl {
            url: endpoint.base_url.clone(),
        };
        let url = reqwest::Url::parse(&endpoint.base_url).map_err(|_| bad_url())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(bad_url());
        }
        let auth = endpoint.auth.header()?;
        let http = http_client(&endpoint.base_url)?;
        let base_url = endpoint.base_url.trim_end_matches('/').into();
        Ok(Self {
            http,
            base_url,
            auth,
            governor,
        })
    }

    /// Makes the call, and retries it as long as that makes sense.
    pub(crate) async fn call<D: Dialect>(
        &self,
        dialect: &D,
        mut call: Call<'_>,
    ) -> Result<Reply, Failure> {
        let account = self.governor.account(AccountKey {
            base_url: Arc::clone(&self.base_url),
            auth: self.auth.clone(),
            model: call.model.to_owned(),
        });
        let policy = self.governor.policy();
        let (mut wasted, mut tries, mut attempts) = (Vec::new(), Tries::default(), 0);
        let mut ask = Ask {
            standing: call.standing,
            prompt: call
                .standing
                .prompt
                .unwrap_or((call.body.len() / TOKEN_BYTES) as u64),
            wait: Duration::ZERO,
            place: None,
            demoted: false,
            limits_cached: dialect.limits_cached(),
        };
        loop {
            let permit = match pass(&account, ask, call.cancel, call.on).await {
                Ok(permit) => permit,
                Err(error) => {
                    // The output of earlier attempts was already declared void.
                    let finished = Vec::new();
                    return Err(Failure {
                        error,
                        finished,
                        spent: wasted,
                        attempts,
                    });
                }
            };
            attempts += 1;
            let failed = match self.attempt(dialect, &permit, &mut call).await {
                Ok(reply) => {
                    permit.replied(&limited(dialect, reply.usage));
                    return Ok(Reply {
                        wasted,
                        attempts,
                        ..reply
                    });
                }
                Err(failed) => failed,
            };
            let Attempt {
                error,
                finished,
                spent,
            } = *failed;
            let stop = permit.failed(&error, &limited(dialect, spent));
            wasted.extend((spent != Usage::default()).then_some(spent));
            let Some(wait) = tries.failed(&error, stop, policy) else {
                return Err(Failure {
                    error,
                    finished,
                    spent: wasted,
                    attempts,
                });
            };
            (call.on)(ModelEvent::Retry {
                attempt: attempts,
                wait: stop.map_or(wait, |stop| stop.wait),
                error: &error,
            });
            ask.wait = wait;
            ask.place = stop.and_then(|stop| stop.place);
            // Its own request may be what fails: others probe before it does so again.
            ask.demoted |= stop.is_some_and(|stop| stop.probed);
        }
    }

    /// Makes one attempt.
    async fn attempt<D: Dialect>(
        &self,
        dialect: &D,
        permit: &Permit,
        call: &mut Call<'_>,
    ) -> Result<Reply, Box<Attempt>> {
        let clock = &**self.governor.clock();
        let mut watch = Watch::new(clock, self.governor.policy().stall, call.cancel);
        let request = self.request(dialect, &call.body, call.attribution);
        let mut response = watch
            .race(request.send())
            .await?
            .map_err(|error| self.send_error(error))?;
        watch.alive();
        let limits = dialect.limits(response.headers());
        // At once: what the head tells holds for all calls of the account.
        permit.head(
            response.status(),
            &limits,
            retry_after(response.headers(), clock.wall()),
        );
        if !response.status().is_success() {
            // A timer of its own: with the status known, an explanation is not worth the full
            // stall timeout.
            let mut patience = Watch::new(clock, ERROR_BODY_WAIT, call.cancel);
            let body = error_body(&mut response, &mut patience).await?;
            let error = dialect.error(response.status(), response.headers(), &body, clock.wall());
            return Err(ModelError::Api(Box::new(error)).into());
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if let Some(kind) = kind.filter(|kind| !kind.contains("event-stream")) {
            return Err(garbled(format!(
                "it is {kind}, not a stream; is the base URL right?"
            ))
            .into());
        }
        let mut assembly = D::Assembly::default();
        let followed = follow(&mut response, &mut assembly, &mut watch, call.on).await;
        match followed.and_then(|()| assembly.finish(limits)) {
            Ok(reply) => {
                self.read_to_end(&mut response).await;
                Ok(reply)
            }
            Err(error) => {
                let (finished, spent) = assembly.salvage();
                Err(Box::new(Attempt {
                    error,
                    finished,
                    spent,
                }))
            }
        }
    }

    /// Reads what comes after the last event, so that the connection can be reused.
    async fn read_to_end(&self, response: &mut reqwest::Response) {
        tokio::select! {
            biased;
            () = async { while let Ok(Some(_)) = response.chunk().await {} } => {}
            () = self.governor.clock().sleep(END_WAIT) => {}
        }
    }

    fn request<D: Dialect>(
        &self,
        dialect: &D,
        body: &Body,
        attribution: &Attribution,
    ) -> reqwest::RequestBuilder {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (name, value) = &self.auth;
        headers.insert(name.clone(), value.clone());
        attribute(attribution, &mut headers);
        dialect.headers(attribution, &mut headers);
        self.http
            .post(format!("{}{}", self.base_url, dialect.path()))
            .headers(headers)
            .body(rope_body::RopeBody::wrap(body))
    }

    /// Returns the error of a request that got no response. Only a failed connection was
    /// certainly not processed.
    fn send_error(&self, error: reqwest::Error) -> ModelError {
        if error.is_connect() {
            ModelError::Connect {
                endpoint: self.base_url.to_string(),
                source: Box::new(error),
            }
        } else {
            ModelError::Cut {
                received: 0,
                source: Some(Box::new(error)),
            }
        }
    }
}

/// Returns the HTTP client for the provider at `url`.
pub fn http_client(url: &str) -> Result<reqwest::Client, SetupError> {
    // Fails only if a provider is already installed, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // HTTP/1.1 on purpose: a provider's cap on streams per HTTP/2 connection would queue agents
    // behind each other unseen, and one reset would cut them all.
    let builder = reqwest::Client::builder()
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("posse/", env!("CARGO_PKG_VERSION")));
    // reqwest takes proxies from the environment, but this machine is reached without one.
    let builder = if is_local(url) {
        builder.no_proxy()
    } else {
        builder
    };
    Ok(builder.build()?)
}

/// Returns a usage as limits count it: by its input that is not read from the cache.
fn limited<D: Dialect>(dialect: &D, usage: Usage) -> Usage {
    match dialect.limits_cached() {
        true => Usage {
            input: usage.input + usage.cache_read,
            ..usage
        },
        false => usage,
    }
}

/// Waits until the governor lets an attempt pass.
async fn pass(
    account: &Arc<Account>,
    ask: Ask<'_>,
    cancel: &CancellationToken,
    on: Listener<'_>,
) -> Result<Permit, ModelError> {
    let mut waiter = account.ask(ask);
    if let Some(permit) = waiter.at_once() {
        return Ok(permit);
    }
    let (why, wait) = waiter.reason();
    on(ModelEvent::Waiting { why, wait });
    let permit = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(ModelError::Cancelled),
        passed = waiter.passed() => passed?,
    };
    on(ModelEvent::Admitted);
    Ok(permit)
}

/// A failed attempt, with what can be kept of it.
struct Attempt {
    error: ModelError,
    finished: Vec<ContentBlock>,
    spent: Usage,
}

impl From<ModelError> for Box<Attempt> {
    fn from(error: ModelError) -> Self {
        Self::new(Attempt {
            error,
            finished: Vec::new(),
            spent: Usage::default(),
        })
    }
}

/// Reads events into `assembly` until the stream is complete.
async fn follow<A: Assembly>(
    response: &mut reqwest::Response,
    assembly: &mut A,
    watch: &mut Watch<'_>,
    on: Listener<'_>,
) -> Result<(), ModelError> {
    let mut decoder = Decoder::default();
    let mut received = 0;
    while !assembly.is_complete() {
        let cut = |source| ModelError::Cut { received, source };
        let chunk = watch
            .race(response.chunk())
            .await?
            .map_err(|error| cut(Some(Box::new(error))))?;
        let Some(chunk) = chunk else {
            return Err(cut(None));
        };
        received += chunk.len() as u64;
        if received > REPLY_LIMIT {
            return Err(garbled(format!("it is larger than {REPLY_LIMIT} bytes")));
        }
        // Bytes alone are not a sign of life: a stream that drips forever without an event has
        // stalled.
        let result = decoder.feed(&chunk, |event| {
            watch.alive();
            assembly.event(event, on).map_err(Box::new)
        });
        result.map_err(|error: Box<ModelError>| *error)?;
    }
    Ok(())
}

/// Returns as much as can be read of an error's body. Only a cancellation is a failure, since the
/// status says enough.
async fn error_body(
    response: &mut reqwest::Response,
    watch: &mut Watch<'_>,
) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while body.len() <= ERROR_BODY_LIMIT {
        match watch.race(response.chunk()).await {
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Err(ModelError::Cancelled) => return Err(ModelError::Cancelled),
            _ => break,
        }
    }
    Ok(body)
}

/// Ends a wait when the call is cancelled or nothing has happened for too long.
///
/// One timer serves a whole stream: a sign of life only records the time, and when the timer
/// fires, it is set again for what is left.
struct Watch<'a> {
    clock: &'a dyn Clock,
    stall: Duration,
    cancel: &'a CancellationToken,
    last_sign: Duration,
    timer: posse_port::BoxFuture<'static, ()>,
}

impl<'a> Watch<'a> {
    fn new(clock: &'a dyn Clock, stall: Duration, cancel: &'a CancellationToken) -> Self {
        Self {
            clock,
            stall,
            cancel,
            last_sign: clock.now(),
            timer: clock.sleep(stall),
        }
    }

    fn alive(&mut self) {
        self.last_sign = self.clock.now();
    }

    async fn race<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ModelError> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                // In this order: a cancellation takes effect even while data keeps coming, and data
                // that has arrived counts even if the timer fires at the same time.
                biased;
                () = self.cancel.cancelled() => return Err(ModelError::Cancelled),
                done = &mut work => return Ok(done),
                () = &mut self.timer => {}
            }
            let silent = self.clock.now().saturating_sub(self.last_sign);
            if silent >= self.stall {
                return Err(ModelError::Stalled { after: silent });
            }
            self.timer = self.clock.sleep(self.stall - silent);
        }
    }
}

/// Returns a header value that is not shown in logs.
fn secret(text: &str) -> Result<HeaderValue, SetupError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| SetupError::BadKey)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Adds headers that tell which agent makes the call. Values that are not valid in a header are
/// left out: they are only for people.
fn attribute(attribution: &Attribution, headers: &mut HeaderMap) {
    let named = [
        ("x-posse-session-id", Some(&attribution.session)),
        ("x-posse-agent-id", Some(&attribution.agent)),
        ("x-posse-parent-agent-id", attribution.parent.as_ref()),
        ("x-posse-agent", Some(&attribution.path)),
    ];
    for (name, value) in named {
        if let Some(value) = value.filter(|value| !value.is_empty())
            && let Ok(value) = HeaderValue::from_str(value)
        {
            headers.insert(name, value);
        }
    }
}
