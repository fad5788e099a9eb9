//! Chat Completions as OpenAI, Ollama, vLLM, llama.cpp and OpenRouter implement it.
//!
//! Every field that one of them omits is optional here.

mod choice;
pub(crate) mod decode;
pub(crate) mod encode;
mod stream;

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use posse_port::BoxFuture;
use posse_port::model::{
    Allowance, ApiError, ApiErrorKind, Attribution, Body, BreakpointPosition, Call, Encoded,
    Failure, Model, ModelChoice, Names, Preamble, RateLimits, Reply, Request,
};
use posse_protocol::{ContentBlock, Message, ToolSpec};
use serde::Deserialize;

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::encoded_entries::Rope;
use crate::response::{excerpt, from_status, retry_after, should_retry};

/// The adapter of this API.
#[derive(Clone)]
pub struct OpenAi {
    connection: Connection,
}

impl OpenAi {
    /// Returns an adapter that uses `connection`, whose base URL ends in `/v1`.
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }
}

/// Models of other providers have no short names.
impl Names for OpenAi {}

impl Model for OpenAi {
    fn dialect(&self) -> &'static str {
        "openai"
    }

    fn preamble(&self, preamble: &Preamble) -> Encoded {
        encode::preamble(preamble)
    }

    fn choice(&self, preamble: &Encoded) -> Option<ModelChoice> {
        choice::choice(preamble)
    }

    fn with_choice(&self, preamble: &Encoded, choice: &ModelChoice) -> Option<Encoded> {
        choice::with_choice(preamble, choice)
    }

    fn without_thinking(&self, reply: &Encoded) -> Encoded {
        // This API has no place for thinking.
        reply.clone()
    }

    fn with_definitions_as_text(&self, entry: &Encoded, _: &[ToolSpec]) -> Encoded {
        // They are text already.
        entry.clone()
    }

    fn entry(&self, message: &Message) -> Encoded {
        encode::entry(message)
    }

    fn encode_head(&self, content: &[ContentBlock]) -> Encoded {
        encode::encode_head(content)
    }

    fn encode_tail(&self, content: &[ContentBlock]) -> Encoded {
        encode::encode_tail(content)
    }

    fn body(&self, request: &Request<'_>) -> Body {
        let mut rope = Rope::for_request(request);
        // Settings come first, because the preamble leaves its list of messages open at the end.
        rope.own(format!(
            r#"{{"max_completion_tokens":{},"stream":true,"stream_options":{{"include_usage":true}},"#,
            request.max_tokens
        ));
        // No marks: these providers cache without them.
        rope.encoded(request.preamble, BreakpointPosition::Preamble, &[]);
        // Without a system prompt the list is still empty, so that no comma belongs there.
        let begins_list = request.preamble.bytes.ends_with(b"[");
        if !begins_list && !request.entries.is_empty() {
            rope.fixed(b",");
        }
        rope.entries(request);
        rope.fixed(b"]}");
        rope.finish()
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Failure>> {
        Box::pin(self.connection.call(&OpenAiWire, call))
    }
}

/// What requests and responses look like.
struct OpenAiWire;

#[derive(Deserialize)]
struct OpenAiEnvelope {
    error: ErrorBody,
}

/// OpenAI sends an object; some compatible servers send a bare string.
#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorBody {
    Full {
        message: Option<String>,
        code: Option<serde_json::Value>,
    },
    Text(String),
}

impl Dialect for OpenAiWire {
    type Assembly = stream::Assembly;

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn headers(&self, _: &Attribution, _: &mut HeaderMap) {}

    fn limits_cached(&self) -> bool {
        true
    }

    fn limits(&self, headers: &HeaderMap) -> RateLimits {
        let allowance = |what: &str| {
            let number = |part: &str| {
                headers
                    .get(format!("x-ratelimit-{part}-{what}"))?
                    .to_str()
                    .ok()?
                    .parse::<u64>()
                    .ok()
            };
            Some(Allowance {
                limit: number("limit")?,
                remaining: number("remaining")?,
                reset_at_ms: None,
            })
        };
        RateLimits {
            requests: allowance("requests"),
            tokens: allowance("tokens"),
            ..RateLimits::default()
        }
    }

    fn error(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> ApiError {
        let (message, code) = read_error(body).unwrap_or_else(|| (excerpt(body, status), None));
        let kind = classify(code.as_deref(), status);
        ApiError {
            kind,
            status: status.as_u16(),
            message,
            request_id: headers
                .get("x-request-id")
                .and_then(|id| id.to_str().ok())
                .map(str::to_owned),
            retry_after: retry_after(headers, now),
            should_retry: should_retry(headers),
        }
    }
}

/// Returns the kind of an error, by its code or else by the status.
fn classify(code: Option<&str>, status: StatusCode) -> ApiErrorKind {
    match code {
        Some("insufficient_quota") => ApiErrorKind::SpendLimit,
        Some("rate_limit_exceeded") => ApiErrorKind::RateLimited,
        Some("context_length_exceeded") => ApiErrorKind::ContextFull,
        _ => from_status(status),
    }
}

/// Returns message and code of an error's body.
fn read_error(body: &[u8]) -> Option<(String, Option<String>)> {
    match serde_json::from_slice::<OpenAiEnvelope>(body).ok()?.error {
        ErrorBody::Full { message, code } => {
            let code = code.and_then(|code| code.as_str().map(str::to_owned));
            Some((message.unwrap_or_else(|| "no explanation".to_owned()), code))
        }
        ErrorBody::Text(message) => Some((message, None)),
    }
}
