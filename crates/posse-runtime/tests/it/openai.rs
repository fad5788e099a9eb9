//! The Chat Completions adapter against the scripted model.

use posse_protocol::{ContentBlock, Message, RawJson, StopReason, ToolContent};
use posse_testkit::{TestClock, scripted};

use crate::calls::{ask, body, call, policy, port, preamble};

const SCRIPT: &str = r#"
[[rule]]
when.tool = "42"
reply = [{ text = "it is {{tool}}" }]
[[rule]]
when.user = "use"
reply = [
  { thinking = "two at once" },
  { text = "looking" },
  { tool = "Read", id = "call_a", input = { path = "a b" } },
  { tool = "List", id = "call_b" },
]
[[rule]]
when.user = "busy"
times = 2
fault = { kind = "status", status = 429, retry_after = "3" }
[[rule]]
when.user = "cut"
times = 1
reply = [{ text = "you said: {{user}}" }]
fault = { kind = "cut", at = 400 }
[[rule]]
reply = [{ text = "you said: {{user}}" }]
"#;

#[tokio::test]
async fn tools_go_there_and_back() {
    let clock = TestClock::default();
    let server = scripted::play(SCRIPT).unwrap();
    let model = scripted::openai(&server.url(), port(&clock), policy()).unwrap();
    let preamble = preamble("Be brief.", &["Read", "List"]);
    let question = Message::user("use tools");
    let first = call(
        &model,
        &clock,
        body(&model, &preamble, std::slice::from_ref(&question), &[]),
    )
    .await;
    let reply = first.result.unwrap();
    let tool = |id: &str, name: &str, input: &str| ContentBlock::ToolUse {
        id: id.into(),
        name: name.into(),
        input: RawJson::parse(input).unwrap(),
    };
    let expected = [
        ContentBlock::Thinking {
            thinking: "two at once".into(),
            signature: String::new(),
        },
        ContentBlock::text("looking"),
        tool("call_a", "Read", r#"{"path":"a b"}"#),
        tool("call_b", "List", "{}"),
    ];
    assert_eq!(
        (&reply.content[..], &reply.stop),
        (&expected[..], &StopReason::ToolUse)
    );
    assert_eq!(first.shown, "looking");
    assert!(reply.usage.input > 0 && reply.usage.output > 0 && reply.usage.thinking > 0);

    let result = |id: &str, text: &str| ContentBlock::ToolResult {
        tool_use_id: id.into(),
        content: vec![ToolContent::text(text)],
        is_error: false,
    };
    let answers = Message {
        role: posse_protocol::Role::User,
        content: vec![result("call_a", "42"), result("call_b", "")],
    };
    let messages = [question, Message::assistant(reply.content), answers];
    let last = call(&model, &clock, body(&model, &preamble, &messages, &[]))
        .await
        .result
        .unwrap();
    assert_eq!(last.content, [ContentBlock::text("it is 42\n")]);
    assert_eq!(last.stop, StopReason::EndTurn);
}

#[tokio::test]
async fn its_faults_are_retried_too() {
    let clock = TestClock::default();
    let server = scripted::play(SCRIPT).unwrap();
    let model = scripted::openai(&server.url(), port(&clock), policy()).unwrap();
    let busy = ask(&model, &clock, "busy?").await;
    assert_eq!(
        (busy.waits, busy.result.unwrap().attempts),
        (vec![3.0, 3.0], 3)
    );
    let cut = ask(&model, &clock, "cut this").await;
    assert_eq!(cut.failures, ["cut"]);
    assert_eq!(
        cut.result.unwrap().content,
        [ContentBlock::text("you said: cut this")]
    );
}

#[tokio::test]
async fn a_repeated_prefix_is_reported_as_cached() {
    let clock = TestClock::default();
    let server = scripted::play(SCRIPT).unwrap();
    let model = scripted::openai(&server.url(), port(&clock), policy()).unwrap();
    let long = "words ".repeat(2000);
    let first = ask(&model, &clock, &long).await.result.unwrap().usage;
    let second = ask(&model, &clock, &long).await.result.unwrap().usage;
    assert_eq!((first.cache_read, second.cache_read), (0, first.prompt()));
    assert_eq!(second.prompt(), first.prompt());
}
