//! What the shared code needs to know of a provider's API.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use posse_port::model::{ApiError, Attribution, ModelError, ModelEvent, RateLimits, Reply};
use posse_protocol::{ContentBlock, Usage};

use crate::sse;

/// A provider's API.
pub(crate) trait Dialect: Send + Sync {
    /// Assembles one reply.
    type Assembly: Assembly;

    /// Returns the path after the base URL.
    fn path(&self) -> &'static str;

    /// Adds headers besides authentication and content type.
    fn headers(&self, attribution: &Attribution, headers: &mut HeaderMap);

    /// Returns what the account has left.
    fn limits(&self, headers: &HeaderMap) -> RateLimits;

    /// Returns true if limits of input count what is read from the cache, too.
    fn limits_cached(&self) -> bool {
        false
    }

    /// Parses an error response.
    fn error(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> ApiError;
}

/// Receives what arrives.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(ModelEvent<'_>) + Send);

/// A reply that is being assembled from events.
pub(crate) trait Assembly: Default + Send {
    /// Handles the next event.
    fn event(&mut self, event: sse::Event<'_>, on: Listener<'_>) -> Result<(), ModelError>;

    /// Returns true if the stream has said that it is complete.
    fn is_complete(&self) -> bool;

    /// Takes the reply; an error if the events do not make a complete one.
    fn finish(&mut self, limits: RateLimits) -> Result<Reply, ModelError>;

    /// Returns what can be kept of a failed attempt: finished blocks, the text of an unfinished
    /// one, and the usage so far.
    fn salvage(self) -> (Vec<ContentBlock>, Usage);
}

/// Returns the error for an invalid reply.
pub(crate) fn garbled(what: impl Into<String>) -> ModelError {
    ModelError::Garbled { what: what.into() }
}

impl From<sse::SseError> for Box<ModelError> {
    fn from(error: sse::SseError) -> Self {
        Box::new(garbled(error.to_string()))
    }
}
