//! What the shared machinery needs to know of a provider's dialect.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use posse_port::model::{ApiError, Attribution, ModelError, ModelEvent, RateLimits, Reply};
use posse_protocol::{ContentBlock, Usage};

use crate::sse;

/// A provider's way of talking.
pub(crate) trait Dialect: Send + Sync {
    /// Puts one reply together.
    type Assembly: Assembly;

    /// The path after the base URL.
    fn path(&self) -> &'static str;

    /// Headers besides authentication and content type.
    fn headers(&self, attribution: &Attribution, headers: &mut HeaderMap);

    /// What the account has left.
    fn limits(&self, headers: &HeaderMap) -> RateLimits;

    /// Reads an error response.
    fn error(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> ApiError;
}

/// Told of what arrives.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(ModelEvent<'_>) + Send);

/// A reply being put together from events.
pub(crate) trait Assembly: Default + Send {
    /// Takes the next event.
    fn event(&mut self, event: sse::Event<'_>, on: Listener<'_>) -> Result<(), ModelError>;

    /// Whether the stream has said that it is complete.
    fn is_complete(&self) -> bool;

    /// The reply, taken out; an error if what came does not add up to one.
    fn finish(&mut self, limits: RateLimits) -> Result<Reply, ModelError>;

    /// What can be kept of an attempt that failed: finished blocks, the text of one that was not, and
    /// what was used so far.
    fn salvage(self) -> (Vec<ContentBlock>, Usage);
}

/// Shorthand for the error of a reply that makes no sense.
pub(crate) fn garbled(what: impl Into<String>) -> ModelError {
    ModelError::Garbled { what: what.into() }
}

impl From<sse::SseError> for Box<ModelError> {
    fn from(error: sse::SseError) -> Self {
        Box::new(garbled(error.to_string()))
    }
}
