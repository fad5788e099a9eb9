//! The server's own words are valid, and bad requests get the class they deserve.

use posse_scripted::conformance::{Answers, cases};
use posse_scripted::{Script, Server, ServerOptions};
use serde_json::{Value, json};

const SCRIPT: &str = r#"
[[rule]]
reply = [
  { thinking = "hm, hm" },
  { redacted_thinking = "c2VhbGVk" },
  { text = "some text that is long enough for several deltas" },
  { tool = "look", input = { at = "x", n = 3 } },
  { tool = "look" },
]
"#;

async fn post(server: &Server, body: &Value) -> reqwest::Response {
    let request = posse_model::http_client("http://127.0.0.1")
        .unwrap()
        .post(format!("{}/v1/messages", server.url()))
        .header("anthropic-version", "2026-10-21")
        .header("authorization", "Bearer test")
        .body(body.to_string());
    request.send().await.unwrap()
}

fn validator(schema: &str) -> jsonschema::Validator {
    jsonschema::draft202012::new(&serde_json::from_str(schema).unwrap()).unwrap()
}

#[tokio::test]
async fn what_the_server_says_is_what_the_real_one_could_say() {
    let server = posse_testkit::scripted::play(SCRIPT).unwrap();
    let events = validator(include_str!(
        "../../../posse-scripted/schemas/anthropic_event.json"
    ));
    let message = validator(include_str!(
        "../../../posse-scripted/schemas/anthropic_message.json"
    ));
    let mut request = json!({
        "model": "claude-opus-5", "max_tokens": 1000, "diagnostics": {"previous_message_id": "msg_none"},
        "messages": [{"role": "user", "content": "go"}],
    });
    let whole: Value = post(&server, &request)
        .await
        .text()
        .await
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        message
            .iter_errors(&whole)
            .map(|error| error.to_string())
            .collect::<Vec<_>>(),
        [""; 0]
    );
    assert_eq!(
        whole["diagnostics"]["cache_miss_reason"]["type"],
        "previous_message_not_found"
    );
    request["stream"] = true.into();
    let stream = post(&server, &request).await.text().await.unwrap();
    let mut seen = Vec::new();
    for event in stream.split_terminator("\n\n") {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = data.strip_prefix("data: ").unwrap().parse().unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), data["type"]);
        if data["type"] != "ping" {
            assert!(events.is_valid(&data), "{data}");
        }
        seen.push(data["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen.first().map(String::as_str), Some("message_start"));
    assert_eq!(seen.last().map(String::as_str), Some("message_stop"));
    assert_eq!(
        seen.iter()
            .filter(|name| *name == "content_block_stop")
            .count(),
        5
    );
}

#[tokio::test]
async fn output_stops_at_its_cap() {
    let server = posse_testkit::scripted::play(SCRIPT).unwrap();
    let request = json!({"model": "claude-opus-5", "max_tokens": 7, "messages": [{"role": "user", "content": "go"}]});
    let whole: Value = post(&server, &request)
        .await
        .text()
        .await
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(whole["stop_reason"], "max_tokens");
    assert_eq!(whole["content"][2]["text"], "some text th");
    assert_eq!(whole["usage"]["output_tokens"], 7);
}

#[tokio::test]
async fn every_conformance_request_gets_its_class() {
    let server = Server::start(ServerOptions::playing(Script::built_in().unwrap())).unwrap();
    let client = posse_model::http_client("http://127.0.0.1").unwrap();
    let mut answers = Answers::new();
    let all = cases().unwrap();
    for case in &all {
        let mut request = client.post(format!("{}{}", server.url(), case.path));
        let usual = [("anthropic-version", "2026-10-21"), ("x-api-key", "test")];
        for (name, value) in usual
            .iter()
            .filter(|(name, _)| !case.headers.contains_key(*name))
        {
            request = request.header(*name, *value);
        }
        for (name, value) in case
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)))
        {
            request = request.header(name, value);
        }
        let body = case
            .body("claude-opus-5-5", &answers)
            .expect("the built-in script thinks");
        let response = request.body(body).send().await.unwrap();
        let status = response.status().as_u16();
        let answer: Value = response.text().await.unwrap().parse().unwrap_or_default();
        assert_eq!(case.judge(status, &answer), Ok(()), "{}", case.name);
        answers.insert(case.name.clone(), answer);
    }
    let refused = all.iter().filter(|case| case.expect.status >= 400).count();
    assert!(
        all.len() >= 20 && refused >= 25,
        "{} cases, {refused} refused",
        all.len()
    );
}
