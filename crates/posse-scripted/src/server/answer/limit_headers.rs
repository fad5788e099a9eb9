//! What is left of the limits, in the headers of the two APIs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::limits::{Level, Levels};

/// Returns the headers of the Messages API.
pub(super) fn anthropic(levels: &Levels, wall: SystemTime) -> Vec<(String, String)> {
    let limits = [
        ("requests", levels.requests),
        ("tokens", levels.tokens),
        ("input-tokens", levels.input_tokens),
        ("output-tokens", levels.output_tokens),
    ];
    headers(&limits, |what, level| {
        let name = |part: &str| format!("anthropic-ratelimit-{what}-{part}");
        [
            (name("limit"), level.limit.to_string()),
            (name("remaining"), level.remaining.to_string()),
            (name("reset"), date(wall + level.full_in)),
        ]
    })
}

/// Returns the headers of Chat Completions.
pub(super) fn openai(levels: &Levels) -> Vec<(String, String)> {
    let limits = [("requests", levels.requests), ("tokens", levels.tokens)];
    headers(&limits, |what, level| {
        let name = |part: &str| format!("x-ratelimit-{part}-{what}");
        [
            (name("limit"), level.limit.to_string()),
            (name("remaining"), level.remaining.to_string()),
            (name("reset"), span(level.full_in)),
        ]
    })
}

fn headers(
    limits: &[(&str, Option<Level>)],
    of_one: impl Fn(&str, Level) -> [(String, String); 3],
) -> Vec<(String, String)> {
    let known = limits
        .iter()
        .filter_map(|(what, level)| Some((what, (*level)?)));
    known
        .flat_map(|(what, level)| of_one(what, level))
        .collect()
}

/// Returns a time as RFC 3339 in whole seconds, never earlier than it is.
fn date(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_nanos().div_ceil(1_000_000_000);
    let timestamp = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    timestamp.unwrap_or(jiff::Timestamp::MAX).to_string()
}

/// Returns a duration in Go's notation, rounded up to a millisecond.
fn span(duration: Duration) -> String {
    let all = duration.as_nanos().div_ceil(1_000_000);
    if (1..1_000).contains(&all) {
        return format!("{all}ms");
    }
    let (hours, minutes, ms) = (all / 3_600_000, all / 60_000 % 60, all % 60_000);
    let seconds = match ms % 1_000 {
        0 => format!("{}s", ms / 1_000),
        fraction => {
            let text = format!("{}.{fraction:03}", ms / 1_000);
            format!("{}s", text.trim_end_matches('0'))
        }
    };
    match (hours, minutes) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_of_go() {
        let spans = [
            (0, "0s"),
            (1, "1ms"),
            (20_000_000, "20ms"),
            (999_000_001, "1s"),
            (1_000_000_000, "1s"),
            (1_200_000_000, "1.2s"),
            (8_640_000_000, "8.64s"),
            (59_999_000_000, "59.999s"),
            (59_999_000_001, "1m0s"),
            (360_000_000_000, "6m0s"),
            (90_005_000_000, "1m30.005s"),
            (3_600_000_000_000, "1h0m0s"),
            (90_061_500_000_000, "25h1m1.5s"),
        ];
        for (nanos, expected) in spans {
            assert_eq!(span(Duration::from_nanos(nanos)), expected);
        }
    }

    #[test]
    fn dates_are_never_too_early() {
        let date = |nanos| date(UNIX_EPOCH + Duration::from_nanos(nanos));
        assert_eq!(date(1_794_700_800_000_000_000), "2026-11-15T00:00:00Z");
        assert_eq!(date(1_794_700_800_000_000_001), "2026-11-15T00:00:01Z");
        let never = UNIX_EPOCH + Duration::from_secs(1 << 50);
        assert_eq!(super::date(never), jiff::Timestamp::MAX.to_string());
    }
}
