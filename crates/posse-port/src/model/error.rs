//! Errors of model calls, and which of them are retryable.

use std::error::Error as StdError;
use std::time::Duration;

use posse_protocol::{ContentBlock, Usage};

/// A call that returned no reply.
#[derive(Debug)]
pub struct Failure {
    /// The error of the last attempt.
    pub error: ModelError,
    /// Content of the last attempt: finished blocks, and the text of an unfinished one; no unsigned
    /// thinking or partial tool call.
    pub finished: Vec<ContentBlock>,
    /// Usage of each attempt, as far as the provider reported it.
    pub spent: Vec<Usage>,
    /// Number of attempts.
    pub attempts: u32,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The caller cancelled it.
    #[error("the call was cancelled")]
    Cancelled,
    /// The API answered with an error, before or during the stream.
    #[error(transparent)]
    Api(#[from] Box<ApiError>),
    /// No connection could be made.
    #[error("cannot connect to {endpoint}")]
    Connect {
        /// The address.
        endpoint: String,
        /// The cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The connection broke, or the stream ended early.
    #[error("the connection to the model broke after {received} bytes of the reply")]
    Cut {
        /// Bytes of the reply that had arrived.
        received: u64,
        /// The cause; `None` if the stream just ended early.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// Nothing arrived for too long.
    #[error("the model sent nothing for {} s", .after.as_secs())]
    Stalled {
        /// The time without data.
        after: Duration,
    },
    /// The response is not a valid reply.
    #[error("the model's reply is invalid: {what}")]
    Garbled {
        /// The defect.
        what: String,
    },
}

impl ModelError {
    /// Returns true if the provider may charge for the attempt: it has begun to answer, or nobody
    /// knows.
    pub fn may_be_billed(&self) -> bool {
        match self {
            Self::Connect { .. } => false,
            Self::Api(error) => error.status == 200,
            _ => true,
        }
    }

    /// Returns true if the same request may succeed when sent again.
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

    /// Returns the delay that the API asked for.
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
    /// The API's own message.
    pub message: String,
    /// The request id to quote to the provider.
    pub request_id: Option<String>,
    /// The delay that the API asked for.
    pub retry_after: Option<Duration>,
    /// The API's own answer on whether to retry; it overrides the class.
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
    /// The request is invalid.
    InvalidRequest,
    /// The conversation is larger than the model's context.
    ContextFull,
    /// The key is missing or wrong.
    Authentication,
    /// The account cannot pay.
    Billing,
    /// The key may not do this.
    Permission,
    /// No such model or endpoint.
    NotFound,
    /// The resource was changed concurrently.
    Conflict,
    /// The request is too large.
    TooLarge,
    /// Too many requests or tokens at the moment.
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
