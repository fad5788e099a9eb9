//! What becomes of messages that are not sent as they should.

use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::http_fault::HttpFault;
use crate::answer::root_cause;

/// What became of a message that was not sent as it should.
pub(super) enum SendFault {
    /// It did not arrive. Another connection may do.
    NotSent(String),
    /// The server does not know the session any more.
    Expired,
    /// The server has refused it.
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its words.
        why: String,
    },
    /// It may have arrived.
    Unknown(String),
}

/// Returns what became of a message.
pub(super) fn send_fault(error: &DynamicTransportError) -> SendFault {
    let source = &*error.error;
    if source.is::<std::io::Error>() {
        // The line did not go through the pipe as a whole.
        return SendFault::NotSent("it does not read any more".into());
    }
    match source.downcast_ref::<StreamableHttpError<HttpFault>>() {
        Some(StreamableHttpError::SessionExpired) => SendFault::Expired,
        Some(StreamableHttpError::Client(fault)) => match fault {
            HttpFault::Unreachable(_) | HttpFault::NoSignIn { .. } => {
                SendFault::NotSent(fault.to_string())
            }
            HttpFault::TooLittle { .. } | HttpFault::NotEnough { .. } => SendFault::Refused {
                status: 403,
                why: fault.to_string(),
            },
            &HttpFault::Status { status, .. } if status < 500 => SendFault::Refused {
                status,
                why: fault.to_string(),
            },
            _ => SendFault::Unknown(fault.to_string()),
        },
        _ => SendFault::Unknown(root_cause(source)),
    }
}

/// Returns true if a person has to sign in first.
pub(super) fn needs_sign_in(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else {
        return false;
    };
    let fault = error.error.downcast_ref::<StreamableHttpError<HttpFault>>();
    matches!(fault, Some(StreamableHttpError::Client(fault)) if fault.needs_sign_in())
}

/// Returns why a request has failed, in short.
pub(super) fn root(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("{} ({})", error.message, error.code.0),
        ServiceError::TransportSend(error) => match send_fault(error) {
            SendFault::NotSent(why) | SendFault::Unknown(why) => why,
            SendFault::Expired => "its session has expired".into(),
            SendFault::Refused { why, .. } => why,
        },
        other => root_cause(other),
    }
}
