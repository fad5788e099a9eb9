//! How a model call fails, and which failures are worth another attempt.

use std::error::Error as StdError;
use std::time::Duration;

use posse_protocol::{ContentBlock, Usage};

/// A call that came to no reply.
#[derive(Debug)]
pub struct Failure {
    /// What the last attempt failed of.
    pub error: ModelError,
    /// What the last attempt had said: blocks that were finished, and the text of one that was not;
    /// unsigned thinking and half a tool call are not among them.
    pub finished: Vec<ContentBlock>,
    /// What each attempt used, as far as the provider had said by then.
    pub spent: Vec<Usage>,
    /// How many attempts were made.
    pub attempts: u32,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Somebody asked for it to end.
    #[error("the call was cancelled")]
    Cancelled,
    /// The API answered with an error, before or during the stream.
    #[error(transparent)]
    Api(#[from] Box<ApiError>),
    /// No connection came about.
    #[error("cannot connect to {endpoint}")]
    Connect {
        /// Where to.
        endpoint: String,
        /// The cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The connection broke, or the stream ended before its end.
    #[error("the connection to the model broke after {received} bytes of the reply")]
    Cut {
        /// Bytes of the reply that had arrived.
        received: u64,
        /// The cause; none when the stream just ended early.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// Nothing came for too long.
    #[error("the model sent nothing for {} s", .after.as_secs())]
    Stalled {
        /// For how long.
        after: Duration,
    },
    /// What came is not a reply.
    #[error("the model's reply is invalid: {what}")]
    Garbled {
        /// What was wrong.
        what: String,
    },
}

impl ModelError {
    /// Whether the same request may succeed if it is sent again.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Cancelled => false,
            Self::Api(error) => error.retryable(),
            Self::Connect { .. }
            | Self::Cut { .. }
            | Self::Stalled { .. }
            | Self::Garbled { .. } => true,
        }
    }

    /// How long the API asked to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api(error) => error.retry_after,
            _ => None,
        }
    }
}

/// An error that the API itself reported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model API answered {} ({kind:?}): {message}", self.status_word())]
pub struct ApiError {
    /// The class.
    pub kind: ApiErrorKind,
    /// The HTTP status; 200 when the error came inside a stream.
    pub status: u16,
    /// The API's own words.
    pub message: String,
    /// The id to quote to the provider.
    pub request_id: Option<String>,
    /// How long the API asked to be left alone.
    pub retry_after: Option<Duration>,
    /// The API's own word on whether to retry; it overrides the class.
    pub should_retry: Option<bool>,
}

impl ApiError {
    fn status_word(&self) -> String {
        if self.status == 200 {
            "inside the stream".into()
        } else {
            self.status.to_string()
        }
    }

    fn retryable(&self) -> bool {
        self.should_retry.unwrap_or(match self.kind {
            ApiErrorKind::RateLimited
            | ApiErrorKind::Overloaded
            | ApiErrorKind::Server
            | ApiErrorKind::Timeout
            | ApiErrorKind::Conflict => true,
            ApiErrorKind::InvalidRequest
            | ApiErrorKind::ContextFull
            | ApiErrorKind::Authentication
            | ApiErrorKind::Billing
            | ApiErrorKind::Permission
            | ApiErrorKind::NotFound
            | ApiErrorKind::TooLarge
            | ApiErrorKind::SpendLimit => false,
        })
    }
}

/// Classes of errors that an API reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// The request is wrong.
    InvalidRequest,
    /// The conversation is larger than the model's context.
    ContextFull,
    /// No key, or a wrong one.
    Authentication,
    /// The account cannot pay.
    Billing,
    /// The key may not do this.
    Permission,
    /// No such model or endpoint.
    NotFound,
    /// Somebody else changed the thing meanwhile.
    Conflict,
    /// The request is too big.
    TooLarge,
    /// Too many requests or tokens just now.
    RateLimited,
    /// The account's own spending cap is reached: waiting does not help.
    SpendLimit,
    /// The provider failed.
    Server,
    /// The provider took too long.
    Timeout,
    /// The provider is overloaded.
    Overloaded,
}
