//! Errors of the Messages API.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use posse_port::model::{ApiError, ApiErrorKind};
use serde::Deserialize;

use crate::response::{excerpt, from_status, retry_after, should_retry};

/// The body of an error response.
#[derive(Deserialize)]
struct Envelope {
    error: Body,
    request_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    error_code: Option<String>,
}

/// Parses an error response.
pub(super) fn read(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
) -> ApiError {
    let envelope = serde_json::from_slice::<Envelope>(body).ok();
    let request_id = headers
        .get("request-id")
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    let (error, in_body) = envelope.map_or_else(
        || {
            (
                Body {
                    message: excerpt(body, status),
                    ..Body::default()
                },
                None,
            )
        },
        |envelope| (envelope.error, envelope.request_id),
    );
    let retry_after = retry_after(headers, now);
    ApiError {
        kind: classify(&error, status),
        status: status.as_u16(),
        message: error.message,
        request_id: request_id.or(in_body),
        retry_after,
        should_retry: should_retry(headers),
    }
}

/// Parses an error inside a stream that began normally.
pub(super) fn in_stream(data: &str) -> ApiError {
    let envelope = serde_json::from_str::<Envelope>(data).ok();
    let request_id = envelope
        .as_ref()
        .and_then(|envelope| envelope.request_id.clone());
    let error = envelope.map_or_else(
        || Body {
            message: data.to_owned(),
            ..Body::default()
        },
        |found| found.error,
    );
    // The status was 200; an unknown kind counts as an error of the server, which is retried.
    let kind = classify(&error, StatusCode::INTERNAL_SERVER_ERROR);
    ApiError {
        kind,
        status: 200,
        message: error.message,
        request_id,
        retry_after: None,
        should_retry: None,
    }
}

/// Returns the kind of an error, by its type or else by the status.
fn classify(error: &Body, status: StatusCode) -> ApiErrorKind {
    let code = error
        .details
        .as_ref()
        .and_then(|details| details.error_code.as_deref());
    match error.kind.as_str() {
        // A spending cap is a 429 as well, but no wait makes it go away.
        "rate_limit_error" if code == Some("enforced_spend_limit_reached") => {
            ApiErrorKind::SpendLimit
        }
        "rate_limit_error" => ApiErrorKind::RateLimited,
        // The API has no code for this.
        "invalid_request_error" if error.message.starts_with("prompt is too long") => {
            ApiErrorKind::ContextFull
        }
        "invalid_request_error" => ApiErrorKind::InvalidRequest,
        "authentication_error" => ApiErrorKind::Authentication,
        "billing_error" => ApiErrorKind::Billing,
        "permission_error" => ApiErrorKind::Permission,
        "not_found_error" => ApiErrorKind::NotFound,
        "conflict_error" => ApiErrorKind::Conflict,
        "request_too_large" => ApiErrorKind::TooLarge,
        "timeout_error" => ApiErrorKind::Timeout,
        "overloaded_error" => ApiErrorKind::Overloaded,
        "api_error" => ApiErrorKind::Server,
        _ => from_status(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spending_cap_is_never_retried_and_a_gateway_page_is_shown() {
        let body = br#"{"type":"error","error":{"type":"rate_limit_error","message":"cap","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        let error = read(
            StatusCode::TOO_MANY_REQUESTS,
            &HeaderMap::new(),
            body,
            SystemTime::now(),
        );
        assert_eq!(error.kind, ApiErrorKind::SpendLimit);
        let page = read(
            StatusCode::BAD_GATEWAY,
            &HeaderMap::new(),
            b"<h1>Bad</h1>",
            SystemTime::now(),
        );
        assert_eq!(
            (page.kind, page.message.as_str()),
            (ApiErrorKind::Server, "<h1>Bad</h1>")
        );
    }
}
