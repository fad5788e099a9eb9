//! Requests of both dialects, encoded by their adapters and read again.

use std::sync::Arc;

use posse_port::clock::SystemClock;
use posse_port::model::{Model, Preamble, Thinking};
use posse_protocol::{ContentBlock, Message, RawJson, Role, ToolContent, ToolSpec};

use super::*;
use crate::{Anthropic, ApiVersion, Auth, Connection, Endpoint, Governor, OpenAi, RetryPolicy};

type DialectUnderTest<'a> = &'a dyn Model;

fn dialects() -> [Box<dyn Model>; 2] {
    let connection = || {
        let (base_url, auth) = (
            "http://127.0.0.1:1".to_owned(),
            Auth::ApiKey("test".to_owned().into()),
        );
        let clock = Arc::new(SystemClock::default());
        let governor = Governor::new(clock, RetryPolicy::default());
        Connection::new(&Endpoint { base_url, auth }, governor).unwrap()
    };
    [
        Box::new(Anthropic::new(connection(), ApiVersion::V2026)),
        Box::new(OpenAi::new(connection())),
    ]
}

fn tool(name: &str) -> ToolSpec {
    let input_schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    ToolSpec {
        name: name.into(),
        description: "does \"things\"".into(),
        input_schema,
    }
}

fn words(tools: &[&str], system: &[&str]) -> Preamble {
    Preamble {
        model: "m".into(),
        tools: tools.iter().map(|name| tool(name)).collect(),
        system: system.iter().map(|text| (*text).to_owned()).collect(),
        thinking: Thinking::Off,
        effort: None,
    }
}

fn entry(kind: EntryKind, encoded: Encoded) -> NewEntry {
    NewEntry {
        seq: 0,
        kind,
        head: None,
        loaded: None,
        encoded,
        checksum: 0,
        reply: None,
    }
}

fn said(text: &str) -> Message {
    Message::user(text)
}

fn told(content: Vec<ContentBlock>) -> Message {
    Message {
        role: Role::User,
        content,
    }
}

fn call(id: &str) -> ContentBlock {
    ContentBlock::ToolUse {
        id: id.into(),
        name: "Read".into(),
        input: RawJson::parse("{}").unwrap(),
    }
}

fn result(id: &str, text: &str) -> ContentBlock {
    let content = vec![ToolContent::Text { text: text.into() }];
    ContentBlock::ToolResult {
        tool_use_id: id.into(),
        content,
        is_error: false,
    }
}

/// Where the second of two requests first differs from the first.
fn check(
    dialect: DialectUnderTest<'_>,
    then: (&Preamble, &[Message]),
    now: (&Preamble, &[Message]),
    expected: Option<&str>,
) -> u64 {
    let sent = [then, now].map(|(preamble, messages)| {
        let entries: Vec<NewEntry> = messages
            .iter()
            .map(|message| entry(EntryKind::Prompt, dialect.entry(message)))
            .collect();
        Sent::read(&dialect.preamble(preamble), &entries).unwrap()
    });
    let [then, now] = [&sent[0], &sent[1]].map(|sent| sent.request(0..usize::MAX));
    let shared = now.shared(&then);
    assert_eq!(
        shared.differs.map(|differs| differs.to_string()).as_deref(),
        expected
    );
    assert!(shared.bytes <= then.bytes().min(now.bytes()));
    shared.bytes
}

// proves FK-08 (part: why)
#[test]
fn the_block_that_differs_is_named() {
    let three = words(&["Bash", "Edit", "Read"], &["who you are", "where"]);
    let history = [
        said("go \u{1f600}"),
        Message {
            role: Role::Assistant,
            content: vec![
                ContentBlock::text("I look"),
                call("toolu_1"),
                call("toolu_2"),
            ],
        },
        told(vec![
            result("toolu_1", "one"),
            result("toolu_2", "two"),
            ContentBlock::text("and"),
        ]),
    ];
    let changed = [
        history[0].clone(),
        history[1].clone(),
        told(vec![
            result("toolu_1", "one"),
            result("toolu_2", "2"),
            ContentBlock::text("and"),
        ]),
    ];
    let [anthropic, openai] = dialects();
    let both = |now: &Preamble, expected: [&str; 2]| {
        check(
            &*anthropic,
            (&three, &history),
            (now, &history),
            Some(expected[0]),
        );
        check(
            &*openai,
            (&three, &history),
            (now, &history),
            Some(expected[1]),
        );
    };
    both(
        &words(&["Edit", "Read"], &["who you are", "where"]),
        ["tools[0] (Edit, was Bash)"; 2],
    );
    both(
        &words(&["Bash", "Edit", "Read", "Web"], &["who you are", "where"]),
        [
            "tools[3] (Web), was system[0]",
            "tools[3] (Web), was reasoning_effort (none)",
        ],
    );
    both(
        &words(&["Bash", "Edit", "Read"], &["who you are", "elsewhere"]),
        ["system[1]", "messages[0] (system)"],
    );
    both(
        &Preamble {
            model: "n".into(),
            ..three.clone()
        },
        ["model (n, was m)"; 2],
    );
    both(
        &Preamble {
            thinking: Thinking::Adaptive,
            ..three.clone()
        },
        [
            "thinking",
            "messages[0] (system), was reasoning_effort (none)",
        ],
    );
    let mut other = three.clone();
    other.tools[1].description = "does more".into();
    both(&other, ["tools[1] (Edit)"; 2]);
    check(
        &*anthropic,
        (&three, &history),
        (&three, &changed),
        Some("messages[2].content[1] (tool_result toolu_2)"),
    );
    check(
        &*openai,
        (&three, &history),
        (&three, &changed),
        Some("messages[4] (tool toolu_2)"),
    );
    check(
        &*anthropic,
        (&three, &history),
        (&three, &history[..2]),
        Some("nothing more, was messages[2].content[0] (tool_result toolu_1)"),
    );
}

#[test]
fn what_goes_on_shares_all_that_was_there() {
    let preamble = words(&["Bash"], &["who"]);
    let history: Vec<Message> = (0..40)
        .map(|number| said(&format!("entry {number}")))
        .collect();
    for dialect in dialects() {
        let all = check(
            &*dialect,
            (&preamble, &history),
            (&preamble, &history),
            None,
        );
        for upto in [0, 1, 7, 39] {
            let shared = check(
                &*dialect,
                (&preamble, &history[..upto]),
                (&preamble, &history),
                None,
            );
            assert!(shared < all);
        }
        // Who speaks is part of it, and so is where a message ends.
        let mut turned = history.clone();
        turned[3].role = Role::Assistant;
        check(
            &*dialect,
            (&preamble, &history),
            (&preamble, &turned),
            Some(match dialect.preamble(&preamble).mark_at {
                Some(_) => "messages[3].content[0] (text)",
                None => "messages[4] (assistant), was messages[4].content[0] (text)",
            }),
        );
    }
    let [anthropic, _] = dialects();
    let joined = [told(vec![ContentBlock::text("a"), ContentBlock::text("b")])];
    check(
        &*anthropic,
        (&preamble, &[said("a"), said("b")]),
        (&preamble, &joined),
        Some("messages[0].content[1] (text), was messages[1].content[0] (text)"),
    );
}

#[test]
fn heads_are_read_with_what_they_begin() {
    let preamble = words(&["Bash"], &["who"]);
    let (results, directive) = ([result("toolu_1", "held")], |text: &str| {
        [ContentBlock::text(text)]
    });
    for (number, dialect) in dialects().iter().enumerate() {
        let fork = |text: &str| {
            let head = Some(dialect.encode_head(&results));
            vec![
                entry(EntryKind::Prompt, dialect.entry(&said("go"))),
                NewEntry {
                    head,
                    ..entry(EntryKind::Prompt, dialect.encode_tail(&directive(text)))
                },
            ]
        };
        let [one, two] = ["one", "two"]
            .map(|text| Sent::read(&dialect.preamble(&preamble), &fork(text)).unwrap());
        let shared = two.request(0..2).shared(&one.request(0..2));
        let expected = [
            "messages[1].content[1] (text)",
            "messages[3].content[0] (text)",
        ][number];
        assert_eq!(shared.differs.unwrap().to_string(), expected);
        // As one message it is the same.
        let whole = told([&results[..], &directive("one")].concat());
        let whole = [dialect.entry(&said("go")), dialect.entry(&whole)]
            .map(|encoded| entry(EntryKind::Prompt, encoded));
        let whole = Sent::read(&dialect.preamble(&preamble), &whole).unwrap();
        assert_eq!(
            whole.request(0..2).shared(&one.request(0..2)),
            Shared {
                bytes: one.request(0..2).bytes(),
                differs: None
            }
        );
    }
}

#[test]
fn a_compaction_is_named_as_such_and_begins_the_count_anew() {
    let preamble = words(&[], &["who"]);
    for (number, dialect) in dialects().iter().enumerate() {
        let mut entries: Vec<NewEntry> = (0..6)
            .map(|number| {
                entry(
                    EntryKind::Prompt,
                    dialect.entry(&said(&format!("entry {number}"))),
                )
            })
            .collect();
        entries[3].kind = EntryKind::Compaction;
        let sent = Sent::read(&dialect.preamble(&preamble), &entries).unwrap();
        let differs = sent
            .request(3..5)
            .shared(&sent.request(0..3))
            .differs
            .unwrap();
        assert!(differs.is_compaction());
        assert_eq!(
            differs.to_string(),
            ["messages[0] (compaction)", "messages[1] (compaction)"][number]
        );
        assert_eq!(sent.request(3..6).shared(&sent.request(3..5)).differs, None);
        let later = sent
            .request(3..5)
            .shared(&sent.request(3..6))
            .differs
            .unwrap();
        assert_eq!(
            later.to_string(),
            [
                "nothing more, was messages[2].content[0] (text)",
                "nothing more, was messages[3].content[0] (text)"
            ][number]
        );
    }
}

#[test]
fn what_is_no_request_is_an_error() {
    let [anthropic, _] = dialects();
    let garbled = entry(
        EntryKind::Prompt,
        Encoded {
            bytes: "{\"role\":".into(),
            mark_at: None,
        },
    );
    assert!(Sent::read(&anthropic.preamble(&words(&[], &[])), [&garbled]).is_err());
    assert!(
        Sent::read(
            &Encoded {
                bytes: "{}".into(),
                mark_at: None
            },
            []
        )
        .is_err()
    );
}
