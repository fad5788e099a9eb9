//! Times that things took to reach the screen.

use std::time::Duration;

use serde_json::{Value, json};

/// Returns the middle, the 99th of 100, and the longest, in milliseconds.
pub(crate) fn summary(mut lags: Vec<Duration>) -> Value {
    lags.sort();
    let at = |percent: usize| {
        let rank = (lags.len() * percent).div_ceil(100).saturating_sub(1);
        lags.get(rank).map(|lag| milliseconds(*lag))
    };
    json!({"count": lags.len(), "p50_ms": at(50), "p99_ms": at(99), "most_ms": at(100)})
}

/// Returns milliseconds with three digits after the point.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
