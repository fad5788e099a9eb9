//! Limits over HTTP: statuses, headers, and the record.

use posse_scripted::Server;
use posse_scripted::limits::{LimitKind, Verdict};
use serde_json::json;
use tokio::task::JoinSet;

use crate::client::{Client, play, prompt};

/// `hello` is a block of 30 bytes, 11 tokens; the answer has 20 bytes, 5 tokens.
const LIMITED: &str = r#"
[[limits]]
account = "a"
requests_per_minute = 50
requests_burst = 2
input_tokens_per_minute = 6000
output_tokens_per_minute = 600

[[rule]]
reply = [{ text = "exactly twenty bytes" }]
"#;

const ANTHROPIC: &str = "anthropic-ratelimit-";

#[tokio::test]
async fn answers_of_messages_tell_what_is_left() {
    let (server, pace) = play(LIMITED);
    let client = &mut Client::connect(&server).await.unwrap();
    let first = client.ask("a").await.unwrap();
    assert_eq!(first.body["usage"]["input_tokens"], 11);
    assert_eq!(first.body["usage"]["output_tokens"], 5);
    let names = ["requests-limit", "requests-remaining", "requests-reset"];
    let expected = [Some("50"), Some("1"), Some("2026-11-15T00:00:02Z")];
    assert_eq!(first.each(ANTHROPIC, names), expected, "1.2 s, rounded up");
    let names = [
        "input-tokens-limit",
        "input-tokens-remaining",
        "input-tokens-reset",
        "output-tokens-limit",
        "output-tokens-remaining",
        "output-tokens-reset",
        "tokens-limit",
        "tokens-remaining",
    ];
    let expected = [
        Some("6000"),
        Some("5989"),
        Some("2026-11-15T00:00:01Z"),
        Some("600"),
        Some("600"),
        Some("2026-11-15T00:00:00Z"),
        Some("6600"),
        Some("6589"),
    ];
    assert_eq!(
        first.each(ANTHROPIC, names),
        expected,
        "nothing was said yet"
    );
    pace.advance_ms(100);
    let second = client.ask("a").await.unwrap();
    let names = [
        "requests-remaining",
        "input-tokens-remaining",
        "output-tokens-remaining",
    ];
    let expected = [Some("0"), Some("5988"), Some("596")];
    assert_eq!(second.each(ANTHROPIC, names), expected);
    assert_eq!(first.header("retry-after"), None);
}

#[tokio::test]
async fn a_request_over_a_limit_is_refused_and_one_that_does_not_wait_is_noted() {
    let (server, pace) = play(LIMITED);
    let client = &mut Client::connect(&server).await.unwrap();
    client.ask("a").await.unwrap();
    client.ask("a").await.unwrap();
    let over = client.ask("a").await.unwrap();
    assert_eq!((over.status, over.header("retry-after")), (429, Some("2")));
    assert_eq!(over.body["error"]["type"], "rate_limit_error");
    let names = ["requests-remaining", "requests-reset"];
    let expected = [Some("0"), Some("2026-11-15T00:00:03Z")];
    assert_eq!(over.each(ANTHROPIC, names), expected);
    pace.advance_ms(1_500);
    let held = client.ask("a").await.unwrap();
    assert_eq!((held.status, held.header("retry-after")), (429, Some("1")));
    let other = client.ask("b").await.unwrap();
    assert_eq!(other.status, 200);
    assert_eq!(other.header("anthropic-ratelimit-requests-limit"), None);
    pace.advance_ms(500);
    assert_eq!(client.ask("a").await.unwrap().status, 200);
    let requests = server.requests();
    let noted: Vec<_> = requests
        .iter()
        .map(|request| (request.account.as_deref(), request.verdict))
        .collect();
    let within = Some(Verdict::Within);
    let expected = [
        (Some("a"), within),
        (Some("a"), within),
        (Some("a"), Some(Verdict::Over(LimitKind::Requests))),
        (Some("a"), Some(Verdict::Held)),
        (Some("account-2"), within),
        (Some("a"), within),
    ];
    assert_eq!(noted, expected);
}

#[tokio::test]
async fn what_is_read_from_the_cache_does_not_count_as_input() {
    let (server, _) = play(LIMITED);
    let client = &mut Client::connect(&server).await.unwrap();
    let mut body = prompt("next");
    body["system"] = json!([
        {"type": "text", "text": "x".repeat(4_000), "cache_control": {"type": "ephemeral"}},
    ]);
    let written = client.messages("a", &body).await.unwrap();
    let usage = &written.body["usage"];
    let (write, input) = (
        &usage["cache_creation_input_tokens"],
        &usage["input_tokens"],
    );
    let left = 6_000 - write.as_u64().unwrap() - input.as_u64().unwrap();
    let remaining = "anthropic-ratelimit-input-tokens-remaining";
    assert!(left < 5_000, "{left}");
    assert_eq!(written.header(remaining), Some(&*left.to_string()));
    let read = client.messages("a", &body).await.unwrap();
    assert_eq!(&read.body["usage"]["cache_read_input_tokens"], write);
    let left = left - input.as_u64().unwrap();
    assert_eq!(read.header(remaining), Some(&*left.to_string()));
}

#[tokio::test]
async fn chat_completions_speak_of_their_limits_in_their_own_words() {
    let (server, pace) = play(
        "[[limits]]\nrequests_per_minute = 3000\nrequests_burst = 2\ntokens_per_minute = 600\n\
         [[rule]]\nreply = [{ text = 'exactly twenty bytes' }]",
    );
    let client = &mut Client::connect(&server).await.unwrap();
    let first = client.chat("k").await.unwrap();
    let used = first.body["usage"]["prompt_tokens"].as_u64().unwrap();
    let names = [
        "limit-requests",
        "remaining-requests",
        "reset-requests",
        "limit-tokens",
        "remaining-tokens",
        "reset-tokens",
    ];
    let left = (600 - used).to_string();
    let reset = format!("{}s", used as f64 / 10.0);
    let expected = ["3000", "1", "20ms", "600", &left, &reset].map(Some);
    assert_eq!(first.each("x-ratelimit-", names), expected);
    client.chat("k").await.unwrap();
    let over = client.chat("k").await.unwrap();
    assert_eq!((over.status, over.header("retry-after")), (429, Some("1")));
    assert_eq!(over.body["error"]["code"], "rate_limit_exceeded");
    assert_eq!(over.body["error"]["type"], "requests");
    assert_eq!(over.header("x-ratelimit-reset-requests"), Some("40ms"));
    pace.advance_ms(1_000);
    assert_eq!(client.chat("k").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_refused_request_uses_no_rule_and_an_invalid_one_no_limit() {
    let (server, pace) = play(
        "[[limits]]\nrequests_per_minute = 1\nretry_after = false\n\
         [[rule]]\ntimes = 1\nreply = [{ text = 'first' }]\n[[rule]]\nreply = [{ text = 'second' }]",
    );
    let client = &mut Client::connect(&server).await.unwrap();
    let invalid = client.messages("a", &json!({})).await.unwrap();
    let unknown = client.messages("", &prompt("hello")).await.unwrap();
    assert_eq!((invalid.status, unknown.status), (400, 401));
    let first = client.ask("a").await.unwrap();
    assert_eq!(first.body["content"][0]["text"], "first");
    let over = client.ask("a").await.unwrap();
    assert_eq!((over.status, over.header("retry-after")), (429, None));
    pace.advance_ms(60_000);
    let second = client.ask("a").await.unwrap();
    assert_eq!(second.body["content"][0]["text"], "second");
    let verdicts: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.verdict)
        .collect();
    let within = Some(Verdict::Within);
    let over = Some(Verdict::Over(LimitKind::Requests));
    assert_eq!(verdicts, [None, None, within, over, within]);
}

/// Completes once `count` requests of the only account and model are in flight.
async fn in_flight(server: &Server, count: u64) {
    while server.limits().first().map_or(0, |pair| pair.in_flight) != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_request_is_in_flight_until_its_answer_has_ended_or_its_client_has_left() {
    let (server, pace) = play(
        "[[limits]]\nconcurrency = 2\n\
         [[rule]]\ntimes = 2\ndelay_ms = 1000\nreply = [{ text = 'late' }]\n\
         [[rule]]\nreply = [{ text = 'at once' }]",
    );
    let mut asking = JoinSet::new();
    let mut ask = async || {
        let mut client = Client::connect(&server).await.unwrap();
        asking.spawn(async move { client.ask("a").await.unwrap().status })
    };
    let (leaver, _) = (ask().await, ask().await);
    in_flight(&server, 2).await;
    let client = &mut Client::connect(&server).await.unwrap();
    let over = client.ask("a").await.unwrap();
    assert_eq!((over.status, over.header("retry-after")), (429, None));
    leaver.abort();
    in_flight(&server, 1).await;
    assert_eq!(client.ask("a").await.unwrap().status, 200);
    pace.advance_ms(1_000);
    assert!(asking.join_next().await.unwrap().is_err(), "it has left");
    assert_eq!(asking.join_next().await.unwrap().unwrap(), 200);
    in_flight(&server, 0).await;
    let summary = client.get("/_scripted/limits").await.unwrap();
    let expected = json!([{
        "account": "account-1", "model": "claude-opus-5-5", "elapsed_us": 1_000_000,
        "within": 3, "over": {"concurrency": 1}, "held": 0, "outage": 0,
        "in_flight": 0, "concurrency": 2, "limits": {},
    }]);
    assert_eq!(summary.body, expected);
}

#[tokio::test]
async fn a_summary_tells_what_was_used_and_what_could_have_been() {
    let (server, pace) = play(LIMITED);
    let client = &mut Client::connect(&server).await.unwrap();
    for _ in 0..3 {
        client.ask("a").await.unwrap();
    }
    pace.advance_ms(1_200);
    client.ask("b").await.unwrap();
    let summary = client.get("/_scripted/limits").await.unwrap();
    let limits = json!({
        "requests": {"per_minute": 50, "burst": 2, "level": 1, "used": 2, "allowed": 3},
        "input_tokens": {
            "per_minute": 6000, "burst": 6000, "level": 6000, "used": 22, "allowed": 6120,
        },
        "output_tokens": {
            "per_minute": 600, "burst": 600, "level": 600, "used": 10, "allowed": 612,
        },
    });
    let expected = json!({
        "account": "a", "model": "claude-opus-5-5", "elapsed_us": 1_200_000,
        "within": 2, "over": {"requests": 1}, "held": 0, "outage": 0,
        "in_flight": 0, "concurrency": null, "limits": limits,
    });
    assert_eq!(summary.body[0], expected);
    assert_eq!(summary.body[1]["account"], "account-2");
}
