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
    /// Nobody has signed in, or what was given then is over.
    #[error("it wants somebody to sign in (HTTP 401): `posse mcp login {server}` does that")]
    NoSignIn {
        /// The server's name.
        server: String,
    },
    /// The sign-in permits too little.
    #[error(
        "it wants more to be permitted than the sign-in does ({wanted}): `posse mcp login {server}` \
         asks for it"
    )]
    TooLittle {
        /// What is to be permitted.
        wanted: String,
        /// The server's name.
        server: String,
    },
    /// It refuses what the sign-in permits.
    #[error("it refuses what the sign-in permits ({wanted})")]
    NotEnough {
        /// What was to be permitted.
        wanted: String,
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
            Self::NoSignIn { .. }
            | Self::TooLittle { .. }
            | Self::NotEnough { .. }
            | Self::TooLong
            | Self::Unreadable(_) => false,
        }
    }

    /// Returns true if a person has to sign in.
    pub(super) fn needs_sign_in(&self) -> bool {
        matches!(self, Self::NoSignIn { .. } | Self::TooLittle { .. })
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
