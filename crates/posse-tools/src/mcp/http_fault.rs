//! What goes wrong with requests over HTTP.

use crate::answer::root_cause;

/// What went wrong with a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFault {
    /// Nothing was sent.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The request may have arrived.
    #[error("the connection failed: {0}")]
    Broken(String),
    /// It answers with an error.
    #[error("it answers HTTP {status}: {body}")]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// Its answer is too long.
    #[error("its answer is longer than 16 MiB")]
    TooLong,
    /// Its answer is not one.
    #[error("its answer is no message: {0}")]
    Unreadable(String),
}

impl HttpFault {
    /// Returns true if another attempt may succeed.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Broken(_) => true,
            Self::Status { status, .. } => *status == 429 || *status >= 500,
            Self::TooLong | Self::Unreadable(_) => false,
        }
    }
}

impl From<reqwest::Error> for HttpFault {
    fn from(error: reqwest::Error) -> Self {
        let cause = root_cause(&error);
        if error.is_connect() || error.is_builder() {
            Self::Unreachable(cause)
        } else {
            Self::Broken(cause)
        }
    }
}
