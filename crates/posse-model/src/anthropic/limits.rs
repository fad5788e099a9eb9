//! Parses rate-limit headers.

use http::HeaderMap;
use posse_port::model::{Allowance, RateLimits};

/// Returns the limits in a response's headers.
pub(super) fn read(headers: &HeaderMap) -> RateLimits {
    RateLimits {
        requests: allowance(headers, "requests"),
        input_tokens: allowance(headers, "input-tokens"),
        output_tokens: allowance(headers, "output-tokens"),
        tokens: allowance(headers, "tokens"),
    }
}

/// Returns one limit, if its headers are present and valid.
fn allowance(headers: &HeaderMap, what: &str) -> Option<Allowance> {
    let text = |part: &str| {
        headers
            .get(format!("anthropic-ratelimit-{what}-{part}"))?
            .to_str()
            .ok()
    };
    Some(Allowance {
        limit: text("limit")?.parse().ok()?,
        remaining: text("remaining")?.parse().ok()?,
        reset_at_ms: text("reset")
            .and_then(|reset| reset.parse::<jiff::Timestamp>().ok())
            .map(jiff::Timestamp::as_millisecond),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_become_allowances() {
        let mut headers = HeaderMap::new();
        for (part, value) in [
            ("limit", "50"),
            ("remaining", "49"),
            ("reset", "2026-11-15T00:00:01Z"),
        ] {
            let name: http::HeaderName = format!("anthropic-ratelimit-requests-{part}")
                .parse()
                .unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        let limits = read(&headers);
        let expected = Allowance {
            limit: 50,
            remaining: 49,
            reset_at_ms: Some(1_794_700_801_000),
        };
        assert_eq!(
            limits,
            RateLimits {
                requests: Some(expected),
                ..RateLimits::default()
            }
        );
    }
}
