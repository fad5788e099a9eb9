//! Every request that the adapters can send is valid by the closed schemas of the real APIs.

use posse_port::model::{
    BreakpointPosition, CacheBreakpoint, Effort, Encoded, Model, Preamble, Request, Thinking, Ttl,
};
use posse_protocol::{ContentBlock, Message, RawJson, Role, ToolContent, ToolSpec};
use posse_testkit::{TestClock, scripted};
use proptest::prelude::*;
use serde_json::Value;

use crate::calls::{policy, port};

fn validator(schema: &str) -> jsonschema::Validator {
    jsonschema::draft202012::new(&serde_json::from_str(schema).unwrap()).unwrap()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "\\PC{1,40}",
        Just("\"quotes\" \\ \n\t \u{1F980} \u{0}".to_owned())
    ]
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_-]{1,20}"
}

/// Raw JSON objects, oddly spaced ones among them.
fn input() -> impl Strategy<Value = RawJson> {
    prop_oneof![
        Just("{}".to_owned()),
        Just("{ \"b\" : 1.50, \"a\":[true,null] }".to_owned()),
        text().prop_map(|text| serde_json::json!({"text": text, "deep": {"n": -1}}).to_string()),
    ]
    .prop_map(|json| RawJson::parse(&json).unwrap())
}

fn said_by_user() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        3 => text().prop_map(ContentBlock::text),
        1 => Just(ContentBlock::Image { media_type: "image/png".into(), data: "AAAA".into() }),
    ]
}

fn said_by_tool() -> impl Strategy<Value = ToolContent> {
    prop_oneof![
        3 => text().prop_map(ToolContent::text),
        1 => Just(ToolContent::Image { media_type: "image/png".into(), data: "AAAA".into() }),
    ]
}

fn from_user() -> impl Strategy<Value = ContentBlock> {
    let result = (
        name(),
        prop::collection::vec(said_by_tool(), 0..3),
        any::<bool>(),
    )
        .prop_map(
            |(tool_use_id, content, is_error)| ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            },
        );
    prop_oneof![said_by_user(), result]
}

fn from_assistant() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        text().prop_map(ContentBlock::text),
        (text(), text()).prop_map(|(thinking, signature)| ContentBlock::Thinking {
            thinking,
            signature
        }),
        text().prop_map(|data| ContentBlock::RedactedThinking { data }),
        (name(), name(), input()).prop_map(|(id, name, input)| ContentBlock::ToolUse {
            id,
            name,
            input
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let user = prop::collection::vec(from_user(), 0..5);
    let assistant = prop::collection::vec(from_assistant(), 0..5);
    prop_oneof![
        user.prop_map(|content| Message {
            role: Role::User,
            content
        }),
        assistant.prop_map(Message::assistant),
    ]
}

fn preamble() -> impl Strategy<Value = Preamble> {
    let tool = (name(), text(), input()).prop_map(|(name, description, schema)| {
        let mut object: Value = serde_json::from_str(schema.get()).unwrap();
        object["type"] = "object".into();
        ToolSpec {
            name,
            description,
            input_schema: (&object).into(),
        }
    });
    let thinking = prop_oneof![
        Just(Thinking::Default),
        Just(Thinking::Adaptive),
        Just(Thinking::Off),
        (1024_u32..9999).prop_map(Thinking::Budget),
    ];
    let efforts = [
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::XHigh,
        Effort::Max,
    ];
    let effort = prop::option::of(prop::sample::select(efforts.to_vec()));
    let system = prop::collection::vec(text(), 0..3);
    (prop::collection::vec(tool, 0..3), system, thinking, effort).prop_map(
        |(tools, system, thinking, effort)| Preamble {
            model: "claude-opus-5".into(),
            tools,
            system,
            thinking,
            effort,
        },
    )
}

/// The body, and the same pieces once more without marks.
fn bodies(
    model: &dyn Model,
    preamble: &Preamble,
    messages: &[Message],
    hour: bool,
) -> (Vec<u8>, Vec<u8>) {
    let preamble = model.preamble(preamble);
    let entries: Vec<Encoded> = messages
        .iter()
        .map(|message| model.entry(message))
        .collect();
    let ttl = if hour { Ttl::OneHour } else { Ttl::FiveMinutes };
    let places = [
        BreakpointPosition::Preamble,
        BreakpointPosition::Entry(0),
        BreakpointPosition::Entry(messages.len() - 1),
    ];
    let marks = places.map(|place| CacheBreakpoint { place, ttl });
    let body = |marks: &[CacheBreakpoint]| {
        let previous = hour.then_some("msg_\"1\"");
        let request = Request {
            preamble: &preamble,
            loaded: &[],
            entries: &entries,
            marks,
            max_tokens: 10_000,
            previous,
        };
        model.body(&request).concat()
    };
    (body(&marks), body(&[]))
}

fn check(validator: &jsonschema::Validator, body: &[u8]) -> Result<(), TestCaseError> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        TestCaseError::fail(format!("{error}: {}", String::from_utf8_lossy(body)))
    })?;
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    prop_assert!(errors.is_empty(), "{errors:?}\n{value}");
    Ok(())
}

#[test]
fn whatever_is_said_is_said_validly() {
    let clock = TestClock::default();
    let anthropic = scripted::anthropic("http://127.0.0.1:1", port(&clock), policy()).unwrap();
    let openai = scripted::openai("http://127.0.0.1:1", port(&clock), policy()).unwrap();
    let messages = validator(include_str!(
        "../../../posse-scripted/schemas/anthropic_request.json"
    ));
    let chat = validator(include_str!(
        "../../../posse-scripted/schemas/openai_request.json"
    ));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (
        preamble(),
        prop::collection::vec(message(), 1..6),
        any::<bool>(),
    );
    runner
        .run(&strategy, |(preamble, said, hour)| {
            let (marked, plain) = bodies(&anthropic, &preamble, &said, hour);
            check(&messages, &marked)?;
            check(&messages, &plain)?;
            let (chat_marked, chat_plain) = bodies(&openai, &preamble, &said, hour);
            prop_assert_eq!(&chat_marked, &chat_plain, "this wire has no marks");
            check(&chat, &chat_plain)
        })
        .unwrap();
}

/// What a schema allows and the API refuses all the same: blank texts, thinking without its seal.
#[tokio::test]
async fn blanks_are_not_sent() {
    let clock = TestClock::default();
    let server = scripted::play("[[rule]]\nreply = [{ text = 'fine' }]").unwrap();
    let model = scripted::anthropic(&server.url(), port(&clock), policy()).unwrap();
    let blank = || ContentBlock::text(" \n");
    let messages = [
        Message::user(""),
        Message::assistant(vec![
            ContentBlock::Thinking {
                thinking: "unsealed".into(),
                signature: String::new(),
            },
            blank(),
            ContentBlock::ToolUse {
                id: "toolu_1".into(),
                name: "Read".into(),
                input: RawJson::empty_object(),
            },
        ]),
        Message {
            role: Role::User,
            content: vec![
                ContentBlock::ToolResult {
                    tool_use_id: "toolu_1".into(),
                    content: vec![ToolContent::text(" \n")],
                    is_error: true,
                },
                blank(),
            ],
        },
    ];
    let preamble = Preamble {
        system: vec![" ".into()],
        ..crate::calls::preamble("", &["Read"])
    };
    let body = crate::calls::body(&model, &preamble, &messages, &[]);
    let run = crate::calls::call(&model, &clock, body).await;
    assert!(run.result.is_ok(), "{:?}", run.result.unwrap_err().error);
}
