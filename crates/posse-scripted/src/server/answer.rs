//! One request, from its head to the response.

mod admit;
mod limit_headers;

use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::Request;
use hyper::body::Incoming;
use posse_protocol::Usage;
use serde_json::{Value, json};

use super::ServerState;
use crate::admitted::AdmittedRequest;
use crate::api_error::{ApiRefusal, kind_of};
use crate::body::{BodyStep, PlayedBody};
use crate::cache::Ticket;
use crate::conversation::Conversation;
use crate::fault::{self, Timed};
use crate::pick::PickedAnswer;
use crate::record::{Outcome, Recorded};
use crate::script::Fault;
use crate::{anthropic, control, models, openai};

const BODY_LIMIT: usize = 32 << 20;
const OPENAI_CACHE_MINIMUM: u64 = 1024;

/// Which API's words an answer is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Api {
    Anthropic,
    OpenAi,
}

/// A reply in the form that was asked for.
enum Said {
    Whole(Value),
    Stream(Vec<Timed>),
}

/// One request being answered.
struct Exchange<'a> {
    shared: &'a Arc<ServerState>,
    reset: &'a Arc<AtomicBool>,
    headers: &'a HeaderMap,
    arrived: Duration,
    number: u64,
    id: String,
    api: Api,
    /// The model whose limits were asked.
    limited_model: OnceLock<String>,
}

pub(super) async fn answer(
    request: Request<Incoming>,
    connection: u64,
    shared: Arc<ServerState>,
    reset: Arc<AtomicBool>,
) -> Result<Response<PlayedBody>, io::Error> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let fixed = |response| Ok(whole(&shared, &reset, response));
    if path.starts_with("/_scripted/") {
        let body = Limited::new(body, BODY_LIMIT)
            .collect()
            .await
            .map_err(io::Error::other)?
            .to_bytes();
        return fixed(control::answer(&shared, &head, &body).await);
    }
    let openai =
        path.ends_with("/chat/completions") || !head.headers.contains_key("anthropic-version");
    let api = if openai && path != "/v1/messages" {
        Api::OpenAi
    } else {
        Api::Anthropic
    };
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiRefusal::new(413, "Request exceeds the maximum size"))
        }
        Err(_) => return Err(io::Error::other("the client went away")),
    };
    if shared.play.is_none() {
        return fixed(match body {
            Ok(body) => sink(&body),
            Err(_) => {
                let mut refused = Response::new(Bytes::new());
                *refused.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
                refused
            }
        });
    }
    // Recorded before it is judged, so that refused requests can be looked at as well.
    let arrived = shared.pace.now();
    let number = record(
        &shared,
        connection,
        arrived,
        &head,
        body.as_ref().map_or_else(|_| Bytes::new(), Bytes::clone),
    );
    let exchange = Exchange {
        shared: &shared,
        reset: &reset,
        headers: &head.headers,
        arrived,
        number,
        id: shared.next_id(),
        api,
        limited_model: OnceLock::new(),
    };
    let mut response = match body {
        Err(refusal) => exchange.refuse(&refusal, &[]),
        Ok(body) => exchange.route(&head.method, path, &body).await?,
    };
    exchange.tell_limits(&mut response);
    shared.record.update(number, |request| {
        request.status = response.status().as_u16()
    });
    Ok(response)
}

fn record(
    shared: &ServerState,
    connection: u64,
    arrived: Duration,
    head: &http::request::Parts,
    body: Bytes,
) -> u64 {
    let secret = |name: &str| matches!(name, "authorization" | "x-api-key");
    let headers = head
        .headers
        .iter()
        .filter(|(name, _)| !secret(name.as_str()));
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    shared.record.add(Recorded {
        number: 0,
        connection,
        at_us: arrived.as_micros() as u64,
        ended_us: None,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect(),
        body,
        status: 0,
        rule: None,
        account: None,
        verdict: None,
        usage: None,
        outcome: Outcome::Open,
    })
}

impl Exchange<'_> {
    async fn route(
        &self,
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> Result<Response<PlayedBody>, io::Error> {
        let refused = |refusal: ApiRefusal| Ok(self.refuse(&refusal, &[]));
        let asks =
            method == Method::POST && matches!(path, "/v1/messages" | "/v1/chat/completions");
        if !asks && let Some(response) = self.outage()? {
            return Ok(response);
        }
        match (method.as_str(), path) {
            ("POST", "/v1/messages") => match self.read_messages(body) {
                Ok(request) => self.messages(&request).await,
                Err(refusal) => refused(refusal),
            },
            ("POST", "/v1/messages/count_tokens") => {
                let counted = anthropic::check_headers(self.headers)
                    .and_then(|asked| anthropic::AnthropicRequest::read_for_count(&asked, body));
                match counted {
                    Ok(request) => Ok(self.json(&json!({"input_tokens": request.prefix.tokens()}))),
                    Err(refusal) => refused(refusal),
                }
            }
            ("POST", "/v1/chat/completions") => {
                match openai::OpenAiRequest::read(self.headers, body) {
                    Ok(request) => self.chat(&request).await,
                    Err(refusal) => refused(refusal),
                }
            }
            ("GET", _) if path.starts_with("/v1/models") => match self.models(path) {
                Ok(answer) => Ok(self.json(&answer)),
                Err(refusal) => refused(refusal),
            },
            ("HEAD", "/api/hello") => Ok(self.json(&json!({}))),
            (_, "/v1/messages" | "/v1/messages/count_tokens" | "/v1/chat/completions") => {
                refused(ApiRefusal {
                    kind: kind_of(400).to_owned(),
                    ..ApiRefusal::new(405, "Method Not Allowed")
                })
            }
            _ => refused(ApiRefusal::new(404, "Not found")),
        }
    }

    fn models(&self, path: &str) -> Result<Value, ApiRefusal> {
        match self.api {
            Api::Anthropic => anthropic::check_headers(self.headers).map(drop)?,
            Api::OpenAi => openai::check_key(self.headers)?,
        }
        match path.strip_prefix("/v1/models/") {
            None => Ok(model_list(self.api)),
            Some(id) => models::find(id)
                .map(|model| model_json(model, self.api))
                .ok_or_else(|| ApiRefusal::new(404, format!("model: {id}"))),
        }
    }

    fn read_messages(&self, body: &[u8]) -> Result<anthropic::AnthropicRequest, ApiRefusal> {
        let asked = anthropic::check_headers(self.headers)?;
        anthropic::AnthropicRequest::read(&asked, body)
    }

    async fn messages(
        &self,
        request: &anthropic::AnthropicRequest,
    ) -> Result<Response<PlayedBody>, io::Error> {
        let (billing, ticket) = {
            let mut cache = self.shared.cache();
            let now = self.shared.pace.now();
            cache.sweep(now);
            cache.bill(&request.prefix, request.model.cache_minimum, now)
        };
        // What is read from the cache does not count.
        let counted = billing.input + billing.write_5m + billing.write_1h;
        let admitted = match self.admit(request.model.id, counted)? {
            ControlFlow::Continue(admitted) => admitted,
            ControlFlow::Break(response) => return Ok(response),
        };
        let answer = match self
            .decide(|text| request.conversation(self.headers, text))
            .await?
        {
            ControlFlow::Continue(answer) => answer,
            ControlFlow::Break(response) => return Ok(response),
        };
        if let Some(tool) = request.unloaded(answer.calls()) {
            let refusal = ApiRefusal::invalid(format!(
                "scripted model: rule {} calls {tool:?}, whose definition is deferred and was not loaded",
                answer.rule
            ));
            return Ok(self.refuse(&refusal, &[]));
        }
        let (id, model) = (format!("msg_{}", self.id), request.model.id);
        let diagnostics = {
            let mut cache = self.shared.cache();
            cache.renew(&ticket);
            let asked = request
                .body
                .get("diagnostics")
                .filter(|asked| !asked.is_null());
            let reason = asked.map(|asked| match asked["previous_message_id"].as_str() {
                Some(previous) => cache.explain(previous, model, &request.prefix, &billing),
                None => Value::Null,
            });
            cache.remember(&id, model, &request.prefix);
            reason
        };
        let reply = anthropic::AnthropicReply::new(id, request, &answer, billing, diagnostics);
        let said = if request.streams() {
            Said::Stream(reply.events())
        } else {
            Said::Whole(reply.message())
        };
        let usage = reply.usage();
        Ok(self.speak(&answer, admitted, &ticket, usage, said).await)
    }

    async fn chat(
        &self,
        request: &openai::OpenAiRequest,
    ) -> Result<Response<PlayedBody>, io::Error> {
        let (cached, ticket) = {
            let mut cache = self.shared.cache();
            let now = self.shared.pace.now();
            cache.sweep(now);
            cache.bill_unmarked(&request.prefix, OPENAI_CACHE_MINIMUM, now)
        };
        // What was cached counts as well.
        let model = request.body["model"].as_str().unwrap_or_default();
        let admitted = match self.admit(model, request.prefix.tokens())? {
            ControlFlow::Continue(admitted) => admitted,
            ControlFlow::Break(response) => return Ok(response),
        };
        let answer = match self
            .decide(|text| request.conversation(self.headers, text))
            .await?
        {
            ControlFlow::Continue(answer) => answer,
            ControlFlow::Break(response) => return Ok(response),
        };
        let reply = openai::OpenAiReply::new(self.id.clone(), request, &answer, cached);
        let said = if request.streams() {
            Said::Stream(reply.events())
        } else {
            Said::Whole(reply.completion())
        };
        let usage = reply.usage();
        Ok(self.speak(&answer, admitted, &ticket, usage, said).await)
    }

    /// Returns what the script says, or the response that leaves nothing to say.
    async fn decide(
        &self,
        conversation: impl FnOnce(bool) -> Conversation,
    ) -> Result<ControlFlow<Response<PlayedBody>, PickedAnswer>, io::Error> {
        let answer = match self.pick(conversation) {
            Ok(answer) => answer,
            Err(refusal) => return Ok(ControlFlow::Break(self.refuse(&refusal, &[]))),
        };
        let failed = self.fail_early(&answer).await?;
        Ok(failed.map_or(ControlFlow::Continue(answer), ControlFlow::Break))
    }

    fn pick(
        &self,
        conversation: impl FnOnce(bool) -> Conversation,
    ) -> Result<PickedAnswer, ApiRefusal> {
        let none = || ApiRefusal::invalid("scripted model: this server only counts");
        let play = self.shared.play.as_ref().ok_or_else(none)?;
        let mut play = play
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let conversation = conversation(play.reads_all_text());
        let answer = play.answer(&conversation).ok_or_else(|| {
            let start: String = conversation.last_user.chars().take(200).collect();
            ApiRefusal::invalid(format!(
                "scripted model: no rule of the script fits turn {} of agent {:?}, last user text {start:?}",
                conversation.turn, conversation.agent
            ))
        })?;
        self.shared.record.update(self.number, |request| {
            request.rule = Some(answer.rule.clone())
        });
        Ok(answer)
    }

    async fn wait(&self, delay_ms: u64) {
        if delay_ms > 0 {
            self.shared
                .pace
                .sleep(Duration::from_millis(delay_ms))
                .await;
        }
    }

    /// Faults that leave nothing to say.
    async fn fail_early(
        &self,
        answer: &PickedAnswer,
    ) -> Result<Option<Response<PlayedBody>>, io::Error> {
        match &answer.fault {
            Some(Fault::Status {
                status,
                class,
                message,
                code,
                retry_after,
                retry_after_ms,
                should_retry,
            }) => {
                self.wait(answer.delay_ms).await;
                let refusal = ApiRefusal {
                    status: *status,
                    kind: class.clone().unwrap_or_else(|| kind_of(*status).to_owned()),
                    message: message
                        .clone()
                        .unwrap_or_else(|| "the script says so".to_owned()),
                    code: code.clone(),
                };
                let headers = [
                    ("retry-after", retry_after.clone()),
                    (
                        "retry-after-ms",
                        retry_after_ms.map(|wait| wait.to_string()),
                    ),
                    (
                        "x-should-retry",
                        should_retry.map(|retry| retry.to_string()),
                    ),
                ];
                Ok(Some(self.refuse(&refusal, &headers)))
            }
            Some(Fault::Stall { at: None }) => std::future::pending().await,
            Some(Fault::Refuse { for_ms }) => {
                // The door is shut before the connection drops, so that a client that reconnects at
                // once is refused.
                self.shared.refuse_for(Duration::from_millis(*for_ms)).await;
                Err(io::Error::other("the script says so"))
            }
            _ => Ok(None),
        }
    }

    fn builder(&self) -> http::response::Builder {
        // A client that wants to know can tell that this is not a provider.
        let builder = Response::builder().header("x-posse-scripted", "1");
        match self.api {
            Api::Anthropic => builder
                .header("request-id", format!("req_{}", self.id))
                .header(
                    "anthropic-organization-id",
                    "00000000-0000-4000-8000-000000000000",
                ),
            Api::OpenAi => builder.header("x-request-id", format!("req_{}", self.id)),
        }
    }

    fn json_builder(&self) -> http::response::Builder {
        self.builder().header("content-type", "application/json")
    }

    fn json(&self, value: &Value) -> Response<PlayedBody> {
        self.finish(
            self.json_builder(),
            vec![BodyStep::Send(value.to_string().into())],
        )
    }

    fn refuse(
        &self,
        refusal: &ApiRefusal,
        headers: &[(&'static str, Option<String>)],
    ) -> Response<PlayedBody> {
        let mut builder = self.json_builder().status(refusal.http_status());
        for (name, value) in headers {
            if let Some(value) = value {
                builder = builder.header(*name, value);
            }
        }
        let body = match self.api {
            Api::Anthropic => refusal.anthropic_body(&format!("req_{}", self.id)),
            Api::OpenAi => refusal.openai_body(),
        };
        self.finish(builder, vec![BodyStep::Send(body.to_string().into())])
    }

    /// Says it when its time has come; from then on what the request wrote to the cache can be
    /// read.
    async fn speak(
        &self,
        answer: &PickedAnswer,
        mut admitted: AdmittedRequest,
        ticket: &Ticket,
        usage: Usage,
        said: Said,
    ) -> Response<PlayedBody> {
        self.wait(answer.delay_ms).await;
        self.shared.cache().begin(ticket);
        self.shared
            .record
            .update(self.number, |request| request.usage = Some(usage));
        admitted.answered(usage.output);
        let fault = answer.fault.as_ref();
        let mut response = match said {
            Said::Whole(body) => self.finish(
                self.json_builder(),
                fault::play_whole(body.to_string(), fault),
            ),
            Said::Stream(events) => {
                let builder = self
                    .builder()
                    .header("content-type", "text/event-stream; charset=utf-8")
                    .header("cache-control", "no-cache");
                self.finish(builder, fault::play(events, answer.tokens_per_s, fault))
            }
        };
        response.body_mut().keep(admitted);
        response
    }

    fn finish(
        &self,
        builder: http::response::Builder,
        steps: Vec<BodyStep>,
    ) -> Response<PlayedBody> {
        let body = |steps| {
            PlayedBody::new(steps, Arc::clone(&self.shared.pace), Arc::clone(self.reset))
                .recorded(Arc::clone(&self.shared.record), self.number)
        };
        // An invalid header in a script makes the answer an error, not a panic.
        builder.body(body(steps)).unwrap_or_else(|_| {
            let mut response = Response::new(body(Vec::new()));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
    }
}

fn whole(
    shared: &ServerState,
    reset: &Arc<AtomicBool>,
    response: Response<Bytes>,
) -> Response<PlayedBody> {
    response.map(|bytes| {
        PlayedBody::new(
            vec![BodyStep::Send(bytes)],
            Arc::clone(&shared.pace),
            Arc::clone(reset),
        )
    })
}

const SINK_REPLY: &str = include_str!("sink_reply.txt");

/// Returns the body's hash in a header, and one short reply for all.
fn sink(body: &[u8]) -> Response<Bytes> {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    let mut response = Response::new(Bytes::from_static(SINK_REPLY.as_bytes()));
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        http::HeaderValue::from_static("text/event-stream"),
    );
    headers.insert("x-body-hash", http::HeaderValue::from(hasher.finish()));
    response
}

fn model_json(model: &models::ModelFacts, api: Api) -> Value {
    match api {
        Api::OpenAi => {
            json!({"id": model.id, "object": "model", "created": 0, "owned_by": "posse"})
        }
        Api::Anthropic => json!({
            "type": "model", "id": model.id, "display_name": model.id, "created_at": "2026-01-01T00:00:00Z",
            "max_input_tokens": model.context, "max_tokens": model.max_output, "lifecycle": "active",
            "line": model.id.split('-').nth(1),
        }),
    }
}

fn model_list(api: Api) -> Value {
    let data: Vec<Value> = models::MODELS
        .iter()
        .map(|model| model_json(model, api))
        .collect();
    match api {
        Api::OpenAi => json!({"object": "list", "data": data}),
        Api::Anthropic => {
            let (first, last) = (data.first().cloned(), data.last().cloned());
            json!({
                "data": data, "has_more": false,
                "first_id": first.map(|model| model["id"].clone()),
                "last_id": last.map(|model| model["id"].clone()),
            })
        }
    }
}
