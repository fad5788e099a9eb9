//! What an error response says by status and headers alone, in any dialect.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use posse_port::model::ApiErrorKind;

/// Returns the kind of a status, for bodies that say nothing: of gateways, proxies, compatible
/// servers.
pub(crate) fn from_status(status: StatusCode) -> ApiErrorKind {
    match status.as_u16() {
        401 => ApiErrorKind::Authentication,
        402 => ApiErrorKind::Billing,
        403 => ApiErrorKind::Permission,
        404 => ApiErrorKind::NotFound,
        408 | 504 => ApiErrorKind::Timeout,
        409 => ApiErrorKind::Conflict,
        413 => ApiErrorKind::TooLarge,
        429 => ApiErrorKind::RateLimited,
        529 => ApiErrorKind::Overloaded,
        500.. => ApiErrorKind::Server,
        _ => ApiErrorKind::InvalidRequest,
    }
}

/// Longest wait that a provider is believed to mean.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Returns `retry-after-ms`, else `retry-after` in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    // `try_`, because the other conversion panics on negative, infinite and huge numbers.
    let positive = |number: f64, unit: f64| {
        let wait = Duration::try_from_secs_f64(number * unit).ok()?;
        Some(wait.min(LONGEST))
    };
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return positive(millis, 0.001);
    }
    let after = text("retry-after")?;
    if let Ok(seconds) = after.parse() {
        return positive(seconds, 1.0);
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(after)
        .ok()?;
    Some(
        SystemTime::from(at)
            .duration_since(now)
            .unwrap_or(Duration::ZERO)
            .min(LONGEST),
    )
}

/// Returns the API's own advice whether to retry.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.as_bytes() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// Returns the beginning of a body that is not JSON, so that people see what the gateway said.
pub(crate) fn excerpt(body: &[u8], status: StatusCode) -> String {
    let text = String::from_utf8_lossy(body);
    let start: String = text.trim().chars().take(300).collect();
    if start.is_empty() {
        status
            .canonical_reason()
            .unwrap_or("no explanation")
            .to_owned()
    } else {
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_in_every_spelling() {
        let check = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
            retry_after(&headers, now).map(|wait| wait.as_secs_f64())
        };
        assert_eq!(check("retry-after", "2"), Some(2.0));
        assert_eq!(check("retry-after", "1.5"), Some(1.5));
        assert_eq!(check("retry-after-ms", "250"), Some(0.25));
        assert_eq!(
            check("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(7.0)
        );
        assert_eq!(
            check("retry-after", "Sun, 06 Nov 1994 08:40:00 GMT"),
            Some(0.0)
        );
        assert_eq!(check("retry-after", "soon"), None);
        assert_eq!(check("retry-after", "-1"), None);
    }
}
