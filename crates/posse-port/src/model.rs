//! The model port: how the runtime encodes messages, sends them, and gets a reply.
//!
//! Bytes are encoded once. [`Model::preamble`] and [`Model::entry`] encode for a provider;
//! [`Model::body`] joins the encoded pieces without looking inside; [`Model::call`] sends them
//! unchanged. A caller that keeps the pieces can send the same prefix again at any time.

mod definitions;
mod error;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posse_protocol::{ContentBlock, Message, StopReason, ToolSpec, Usage};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::BoxFuture;
pub use definitions::definitions_as_text;
pub use error::{ApiError, ApiErrorKind, Failure, ModelError};
pub use standing::{CallPriority, CallWait, Lineage, Standing};

/// Model names of a provider. The defaults suit a provider without short names.
pub trait Names {
    /// Returns the newest model with a short name, such as a family (`opus`); `small` is the
    /// smallest.
    fn model_of(&self, _short: &str) -> Option<String> {
        None
    }

    /// Returns the context window, prompt and reply together, in tokens, if known.
    fn window_of(&self, _model: &str) -> Option<u64> {
        None
    }

    /// Returns the short name of a model's family, ignoring a date or gateway prefix in its id.
    fn family_of(&self, _model: &str) -> Option<String> {
        None
    }

    /// Returns false if a model is known not to take an effort.
    fn takes_effort(&self, _model: &str, _effort: Effort) -> bool {
        true
    }

    /// Returns true if requests to a model can have definitions of tools that were loaded in
    /// mid-conversation. Another model reads them as [text](definitions_as_text).
    fn loads_tools(&self, _model: &str) -> bool {
        false
    }
}

/// A model API.
pub trait Model: Names + Send + Sync {
    /// The name of this encoding. Bytes of one dialect are meaningless in another.
    fn dialect(&self) -> &'static str;

    /// Encodes what stays the same from request to request.
    fn preamble(&self, preamble: &Preamble) -> Encoded;

    /// Returns the model and the effort that a preamble asks for; `None` if it is not one of this
    /// dialect.
    fn choice(&self, preamble: &Encoded) -> Option<ModelChoice>;

    /// Returns a preamble that asks for another model or effort; everything else stays byte for
    /// byte. `None` if it is not one of this dialect.
    fn with_choice(&self, preamble: &Encoded, choice: &ModelChoice) -> Option<Encoded>;

    /// Returns an encoded reply without its thinking, which no other model can read.
    fn without_thinking(&self, reply: &Encoded) -> Encoded;

    /// Returns an encoded message with the definitions that it brings as text, for a model that
    /// does not [load](Names::loads_tools) tools. `tools` are those that were loaded.
    fn with_definitions_as_text(&self, entry: &Encoded, tools: &[ToolSpec]) -> Encoded;

    /// Encodes one message of the history.
    fn entry(&self, message: &Message) -> Encoded;

    /// Encodes the beginning of a message to the model, before its end is known.
    fn encode_head(&self, content: &[ContentBlock]) -> Encoded;

    /// Encodes the end of that message. Joined by a comma, the two are equivalent to
    /// [`entry`](Self::entry) of one message with all the content.
    fn encode_tail(&self, content: &[ContentBlock]) -> Encoded;

    /// Joins pieces into a request and splices in cache marks. Costs O(pieces), not O(bytes).
    fn body(&self, request: &Request<'_>) -> Body;

    /// Sends `body` when it is its turn and reads the reply to its end, retrying retryable errors.
    ///
    /// Only a complete reply is returned. Dropping the future, or `call.cancel`, ends the stream at
    /// once; nothing continues in the background.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Failure>>;
}

/// The part of a request that stays the same until an agent gets another model.
#[derive(Clone, Debug, PartialEq)]
pub struct Preamble {
    /// The provider's id of the model.
    pub model: String,
    /// The tools, in a fixed order.
    pub tools: Vec<ToolSpec>,
    /// The system prompt, block by block.
    pub system: Vec<String>,
    /// The thinking mode.
    pub thinking: Thinking,
    /// The effort, for models that support it.
    pub effort: Option<Effort>,
}

/// The model that a preamble asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// The provider's id of the model.
    pub model: String,
    /// The effort; `None` for the model's own.
    pub effort: Option<Effort>,
}

/// Thinking of the model before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// The model's default: nothing is sent.
    #[default]
    Default,
    /// The model decides how much.
    Adaptive,
    /// Up to N tokens.
    Budget(u32),
    /// No thinking.
    Off,
}

/// Effort of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Lowest.
    Low,
    /// Medium.
    Medium,
    /// The default of most models.
    High,
    /// Above the default.
    XHigh,
    /// Highest.
    Max,
}

impl Effort {
    /// All levels, lowest first.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// Returns the word on the wire, the same for every provider.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Returns the level with this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

/// Encoded bytes, with the offset at which a cache mark can be spliced in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The bytes as sent, without marks.
    pub bytes: Bytes,
    /// Offset for the mark; `None` if the piece cannot carry one.
    pub mark_at: Option<usize>,
}

impl AsRef<[u8]> for Encoded {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A request, as pieces.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The agent's preamble.
    pub preamble: &'a Encoded,
    /// Definitions of tools that the history has loaded, in that order: each a [`ToolSpec`] as
    /// JSON. They change no byte of preamble and history, and are left out for a model that does
    /// not [load](Names::loads_tools) tools.
    pub loaded: &'a [Bytes],
    /// The history, oldest first.
    pub entries: &'a [Encoded],
    /// Cache breakpoints; at most four.
    pub marks: &'a [CacheBreakpoint],
    /// Maximum output tokens.
    pub max_tokens: u32,
    /// Id of the previous reply, with which the API explains a cache miss.
    pub previous: Option<&'a str>,
}

/// A cache breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBreakpoint {
    /// Its position.
    pub place: BreakpointPosition,
    /// Its lifetime.
    pub ttl: Ttl,
}

/// Position of a cache breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakpointPosition {
    /// At the end of the preamble.
    Preamble,
    /// At the end of the entry with this index.
    Entry(usize),
}

/// Lifetime of a cached prefix after its last use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// Five minutes.
    FiveMinutes,
    /// One hour.
    OneHour,
}

/// The bytes of a request: a rope that shares its pieces with the history.
#[derive(Clone, Debug, Default)]
pub struct Body(Arc<[Bytes]>);

impl Body {
    /// The rope's parts, in order.
    pub fn parts(&self) -> &[Bytes] {
        &self.0
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Returns true if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Concatenates the parts; for tests and debugging, never for sending.
    pub fn concat(&self) -> Vec<u8> {
        self.0.concat()
    }
}

impl FromIterator<Bytes> for Body {
    fn from_iter<I: IntoIterator<Item = Bytes>>(parts: I) -> Self {
        Self(parts.into_iter().filter(|part| !part.is_empty()).collect())
    }
}

/// Origin of a call, sent to the provider in headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// The session.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The agent that started it.
    pub parent: Option<String>,
    /// The agent's path in the session, for example `/main/review/2`.
    pub path: String,
}

/// One model call.
pub struct Call<'a> {
    /// The request.
    pub body: Body,
    /// The provider's id of the model, which has limits of its own.
    pub model: &'a str,
    /// Whose turn it is among the calls that wait for the account.
    pub standing: &'a Standing,
    /// The agent that calls.
    pub attribution: &'a Attribution,
    /// Cancels the call.
    pub cancel: &'a CancellationToken,
    /// Called with each event as it arrives. Must not block.
    pub on: &'a mut (dyn FnMut(ModelEvent<'_>) + Send),
}

/// An event while a reply arrives.
#[derive(Clone, Copy, Debug)]
pub enum ModelEvent<'a> {
    /// The reply has begun.
    Started {
        /// The model that actually answers.
        model: &'a str,
    },
    /// More text.
    Text(&'a str),
    /// More thinking.
    Thinking(&'a str),
    /// A tool call has begun.
    ToolUse {
        /// The call's id.
        id: &'a str,
        /// The tool's name.
        name: &'a str,
    },
    /// More of a tool call's input.
    ToolInput(&'a str),
    /// A block is finished.
    BlockDone,
    /// The attempt failed and everything it showed is void; the next one follows after `wait`.
    Retry {
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// Delay before the next attempt, as far as it is known.
        wait: Duration,
        /// The cause.
        error: &'a ModelError,
    },
    /// The attempt waits in the account's queue.
    Waiting {
        /// The cause.
        why: CallWait,
        /// Time until the account is asked again, if it is known. Other calls may be first.
        wait: Option<Duration>,
    },
    /// The wait is over and the attempt is sent.
    Admitted,
}

/// A complete reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The provider's id of the reply.
    pub id: String,
    /// The model that actually answered.
    pub model: String,
    /// Its content.
    pub content: Vec<ContentBlock>,
    /// The stop reason.
    pub stop: StopReason,
    /// Usage of the reply.
    pub usage: Usage,
    /// Usage of each failed attempt that is billed, as far as the provider reported it. Kept apart
    /// because prices depend on the size of each prompt.
    pub wasted: Vec<Usage>,
    /// Reason for a cache miss, if the provider reports one.
    pub cache_miss: Option<CacheMiss>,
    /// Remaining rate limits, from the response headers.
    pub limits: RateLimits,
    /// Number of attempts.
    pub attempts: u32,
}

/// Reason why a prefix was not found in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMiss {
    /// The provider's term, for example `tools_changed`.
    pub reason: String,
    /// Number of tokens that could have been read.
    pub missed_tokens: Option<u64>,
}

/// Remaining rate limits of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests.
    pub requests: Option<Allowance>,
    /// Input tokens.
    pub input_tokens: Option<Allowance>,
    /// Output tokens.
    pub output_tokens: Option<Allowance>,
    /// All tokens.
    pub tokens: Option<Allowance>,
}

/// One rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The bucket's size.
    pub limit: u64,
    /// What remains of it.
    pub remaining: u64,
    /// When it is full again, in milliseconds of Unix time.
    pub reset_at_ms: Option<i64>,
}
