//! Errors in the words of the two APIs.

use http::StatusCode;
use serde_json::{Value, json};

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiRefusal {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) code: Option<String>,
}

impl ApiRefusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: kind_of(status).to_owned(),
            message: message.into(),
            code: None,
        }
    }

    /// Returns the most common one: the request itself is invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(crate) fn http_status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn anthropic_body(&self, request_id: &str) -> Value {
        let mut error = json!({"type": self.kind, "message": self.message});
        if let Some(code) = &self.code {
            error["details"] = json!({"error_code": code});
        }
        json!({"type": "error", "error": error, "request_id": request_id})
    }

    pub(crate) fn openai_body(&self) -> Value {
        let kind = match self.status {
            400 | 404 | 409 | 413 => "invalid_request_error",
            401 => "authentication_error",
            429 if self.kind == "tokens" => "tokens",
            429 => "requests",
            _ => "server_error",
        };
        json!({"error": {"message": self.message, "type": kind, "param": null, "code": self.code}})
    }
}

/// Returns the error type of a status.
pub(crate) fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        408 | 504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}
