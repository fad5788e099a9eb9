//! `/_scripted/…`: inspects the server and moves its clock, from another process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::server::ServerState;

/// Answers
/// - `GET requests?since=N`: the recorded requests as JSON,
/// - `GET limits`: what each account and model did, and what their limits are,
/// - `GET wait?count=N&since=N`: the same, once there have been `count`,
/// - `POST clock` `{"advance_ms": N}`: moves the server's clock ahead.
pub(crate) async fn answer(
    shared: &Arc<ServerState>,
    head: &http::request::Parts,
    body: &Bytes,
) -> Response<Bytes> {
    let number = |name: &str| {
        let query = head.uri.query().unwrap_or_default().split('&');
        let found = query
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name);
        found
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0_u64)
    };
    let recorded = |since| serde_json::to_value(shared.record.since(since)).unwrap_or_default();
    match (
        &head.method,
        head.uri.path().trim_start_matches("/_scripted/"),
    ) {
        (&Method::GET, "requests") => respond(StatusCode::OK, &recorded(number("since"))),
        (&Method::GET, "wait") => {
            shared.record.wait_for(number("count")).await;
            respond(StatusCode::OK, &recorded(number("since")))
        }
        (&Method::GET, "limits") => {
            let summary = shared.limiter().summary(shared.pace.now());
            let summary = serde_json::to_value(summary).unwrap_or_default();
            respond(StatusCode::OK, &summary)
        }
        (&Method::POST, "clock") => {
            let asked: Value = serde_json::from_slice(body).unwrap_or_default();
            let Some(ahead) = asked["advance_ms"].as_u64() else {
                return respond(
                    StatusCode::BAD_REQUEST,
                    &json!({"error": "expected {\"advance_ms\": N}"}),
                );
            };
            shared.pace.advance(Duration::from_millis(ahead));
            respond(
                StatusCode::OK,
                &json!({"now_ms": shared.pace.now().as_millis() as u64}),
            )
        }
        _ => respond(
            StatusCode::NOT_FOUND,
            &json!({"error": "requests, limits, wait, clock"}),
        ),
    }
}

fn respond(status: StatusCode, value: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(
        "content-type",
        http::HeaderValue::from_static("application/json"),
    );
    response
}
