//! The model port: how the runtime turns words into bytes, sends them, and gets a reply.
//!
//! Bytes are made once. [`Model::preamble`] and [`Model::entry`] spell words for a provider;
//! [`Model::body`] strings the finished pieces together without looking inside; [`Model::call`]
//! sends them as they are. Whoever keeps the pieces can send the same prefix for ever.

mod error;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posse_protocol::{ContentBlock, Message, StopReason, ToolSpec, Usage};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::BoxFuture;
pub use error::{ApiError, ApiErrorKind, Failure, ModelError};

/// What a provider calls its models. One that has no short names has nothing to say.
pub trait Names {
    /// The newest model that goes by a short name, a family's (`opus`) for one; `small` is the smallest.
    fn model_of(&self, _short: &str) -> Option<String> {
        None
    }

    /// How large a prompt may become together with its reply, in tokens, if that is known.
    fn window_of(&self, _model: &str) -> Option<u64> {
        None
    }

    /// The short name of the family that a model is of, whatever a date or a gateway adds to its id.
    fn family_of(&self, _model: &str) -> Option<String> {
        None
    }
}

/// A model API.
pub trait Model: Names + Send + Sync {
    /// A name for this spelling. Bytes of one dialect mean nothing in another.
    fn dialect(&self) -> &'static str;

    /// Spells what stays the same for an agent's whole life.
    fn preamble(&self, preamble: &Preamble) -> Encoded;

    /// Spells one message of the history.
    fn entry(&self, message: &Message) -> Encoded;

    /// Spells the beginning of a message to the model, whose end is not known yet.
    fn encode_head(&self, content: &[ContentBlock]) -> Encoded;

    /// Spells the end of it. Joined by a comma, the two mean what [`entry`](Self::entry) makes of one message
    /// with all the content.
    fn encode_tail(&self, content: &[ContentBlock]) -> Encoded;

    /// Strings pieces together into a request, splicing in cache marks. Costs O(pieces), not O(bytes).
    fn body(&self, request: &Request<'_>) -> Body;

    /// Sends `body` and follows the reply to its end, retrying what is worth it.
    ///
    /// A reply is returned only if it is whole. Dropping the future, or `call.cancel`, ends the
    /// stream at once; nothing of it goes on in the background.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Failure>>;
}

/// What stays the same for an agent's whole life.
#[derive(Clone, Debug, PartialEq)]
pub struct Preamble {
    /// The provider's id of the model.
    pub model: String,
    /// The tools, in an order that never changes.
    pub tools: Vec<ToolSpec>,
    /// The system prompt, block by block.
    pub system: Vec<String>,
    /// Whether the model thinks.
    pub thinking: Thinking,
    /// How hard it tries, where the model lets one choose.
    pub effort: Option<Effort>,
}

/// Whether and how the model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// As the model does by default: nothing is sent.
    #[default]
    Default,
    /// The model decides how much.
    Adaptive,
    /// Up to so many tokens.
    Budget(u32),
    /// Not at all.
    Off,
}

/// How hard the model tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Least.
    Low,
    /// Between.
    Medium,
    /// What most models do by default.
    High,
    /// More than that.
    XHigh,
    /// Most.
    Max,
}

impl Effort {
    /// Every one, least first.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// The word on the wire, the same for every provider.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// Finished bytes, with the place where a cache mark can be spliced in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The bytes as sent, without marks.
    pub bytes: Bytes,
    /// Offset of the splice, if the piece can carry a mark at all.
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
    /// The history, oldest first.
    pub entries: &'a [Encoded],
    /// Where the cache should keep what it has read; at most four.
    pub marks: &'a [CacheBreakpoint],
    /// The cap on output.
    pub max_tokens: u32,
    /// Id of the reply before this one, so that the API can say why its cache was missed.
    pub previous: Option<&'a str>,
}

/// A cache mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBreakpoint {
    /// After what.
    pub place: BreakpointPosition,
    /// For how long.
    pub ttl: Ttl,
}

/// Where a mark stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakpointPosition {
    /// At the end of the preamble.
    Preamble,
    /// At the end of the entry with this index.
    Entry(usize),
}

/// How long a cached prefix lives after its last use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// Five minutes.
    FiveMinutes,
    /// One hour.
    OneHour,
}

/// The bytes of a request: a rope that shares its pieces with the history they come from.
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

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of it in one piece: for tests and for looking at, never on the way to the wire.
    pub fn concat(&self) -> Vec<u8> {
        self.0.concat()
    }
}

impl FromIterator<Bytes> for Body {
    fn from_iter<I: IntoIterator<Item = Bytes>>(parts: I) -> Self {
        Self(parts.into_iter().filter(|part| !part.is_empty()).collect())
    }
}

/// Whose call it is, told to the provider in headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// The session.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The agent that started it.
    pub parent: Option<String>,
    /// The agent's path in the session, `/main/review/2` for one.
    pub path: String,
}

/// One call.
pub struct Call<'a> {
    /// What is sent.
    pub body: Body,
    /// For whom.
    pub attribution: &'a Attribution,
    /// Ends the call when it is cancelled.
    pub cancel: &'a CancellationToken,
    /// Told of what arrives, while it arrives. Must not block.
    pub on: &'a mut (dyn FnMut(ModelEvent<'_>) + Send),
}

/// What happens while a reply arrives.
#[derive(Clone, Copy, Debug)]
pub enum ModelEvent<'a> {
    /// The reply has begun.
    Started {
        /// The model that really answers.
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
    /// More of a tool's input.
    ToolInput(&'a str),
    /// A block is finished.
    BlockDone,
    /// The attempt failed and everything it showed is void; another follows after `wait`.
    Retry {
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// How long posse waits.
        wait: Duration,
        /// Why.
        error: &'a ModelError,
    },
}

/// A whole reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The provider's id of the reply.
    pub id: String,
    /// The model that really answered.
    pub model: String,
    /// What it said.
    pub content: Vec<ContentBlock>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What the reply used.
    pub usage: Usage,
    /// What attempts before it used that came to nothing but are paid for, one by one: prices go by
    /// the size of each prompt. As far as the provider had said by then.
    pub wasted: Vec<Usage>,
    /// Why the cache was missed, if the provider says.
    pub cache_miss: Option<CacheMiss>,
    /// What the account has left, as the response's headers said.
    pub limits: RateLimits,
    /// How many attempts it took.
    pub attempts: u32,
}

/// Why a prefix was not found in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMiss {
    /// The provider's word for it, `tools_changed` for one.
    pub reason: String,
    /// How many tokens could have been read.
    pub missed_tokens: Option<u64>,
}

/// What an account has left.
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
    /// What is left in it.
    pub remaining: u64,
    /// When it is full again, in milliseconds of Unix time.
    pub reset_at_ms: Option<i64>,
}
