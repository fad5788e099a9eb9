//! The Anthropic Messages API.

mod choice;
pub(crate) mod decode;
pub(crate) mod encode;
mod error;
mod limits;
mod loaded;
mod names;
mod stream;
mod thinking;

use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, StatusCode};
use posse_port::BoxFuture;
use posse_port::model::{
    ApiError, Attribution, Body, BreakpointPosition, Call, Effort, Encoded, Failure, Model,
    ModelChoice, Names, Preamble, RateLimits, Reply, Request,
};
use posse_protocol::{ContentBlock, Message, ToolSpec};

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::encoded_entries::Rope;

/// The supported versions of the API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiVersion {
    /// `2023-06-01`, which compatible servers and gateways support.
    V2023,
    /// `2026-10-21`, which has no sampling parameters any more.
    #[default]
    V2026,
}

impl ApiVersion {
    /// Returns the header's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2023 => "2023-06-01",
            Self::V2026 => "2026-10-21",
        }
    }
}

/// The adapter of this API.
#[derive(Clone)]
pub struct Anthropic {
    connection: Connection,
    dialect: AnthropicWire,
}

/// What requests and responses look like.
#[derive(Clone)]
struct AnthropicWire {
    version: ApiVersion,
    /// Ask the API to explain cache misses, which compatible servers do not support.
    diagnose: bool,
}

impl Anthropic {
    /// Returns an adapter that uses `connection`.
    pub fn new(connection: Connection, version: ApiVersion) -> Self {
        Self {
            connection,
            dialect: AnthropicWire {
                version,
                diagnose: version == ApiVersion::V2026,
            },
        }
    }
}

impl Names for Anthropic {
    fn model_of(&self, short: &str) -> Option<String> {
        names::model_of(short).map(str::to_owned)
    }

    fn family_of(&self, model: &str) -> Option<String> {
        names::family_of(model).map(str::to_owned)
    }

    fn window_of(&self, model: &str) -> Option<u64> {
        names::window_of(model)
    }

    fn takes_effort(&self, model: &str, _: Effort) -> bool {
        names::takes_effort(model)
    }

    fn loads_tools(&self, model: &str) -> bool {
        names::loads_tools(model)
    }
}

impl Model for Anthropic {
    fn dialect(&self) -> &'static str {
        "anthropic"
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
        thinking::dropped(reply)
    }

    fn with_definitions_as_text(&self, entry: &Encoded, tools: &[ToolSpec]) -> Encoded {
        loaded::as_text(entry, tools)
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
        self.dialect.body(request)
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Failure>> {
        Box::pin(self.connection.call(&self.dialect, call))
    }
}

impl AnthropicWire {
    /// Joins the pieces of a request.
    fn body(&self, request: &Request<'_>) -> Body {
        let mut rope = Rope::for_request(request);
        rope.fixed(b"{");
        rope.spliced(
            request.preamble,
            BreakpointPosition::Preamble,
            request.marks,
            loaded::splice(request),
        );
        let diagnostics = match request.previous {
            _ if !self.diagnose => String::new(),
            Some(id) => {
                format!(
                    r#","diagnostics":{{"previous_message_id":{}}}"#,
                    serde_json::Value::from(id)
                )
            }
            None => r#","diagnostics":{"previous_message_id":null}"#.to_owned(),
        };
        rope.own(format!(
            r#","max_tokens":{},"stream":true{diagnostics},"messages":["#,
            request.max_tokens
        ));
        rope.entries(request);
        rope.fixed(b"]}");
        rope.finish()
    }
}

impl Dialect for AnthropicWire {
    type Assembly = stream::Assembly;

    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn headers(&self, _: &Attribution, headers: &mut HeaderMap) {
        headers.insert(
            "anthropic-version",
            HeaderValue::from_static(self.version.as_str()),
        );
    }

    fn limits(&self, headers: &HeaderMap) -> RateLimits {
        limits::read(headers)
    }

    fn error(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> ApiError {
        error::read(status, headers, body, now)
    }
}
