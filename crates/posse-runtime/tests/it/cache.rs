//! Marks that the adapter splices in, and what the cache makes of them.

use posse_port::model::{BreakpointPosition, CacheBreakpoint, Encoded, Model, Request, Ttl};
use posse_protocol::{ContentBlock, Message, Usage};
use posse_scripted::Pace;
use posse_testkit::{TestClock, scripted};
use std::time::Duration;

use crate::calls::{call, policy, port, preamble};

const SCRIPT: &str = "[[rule]]\nreply = [{ thinking = 'hm' }, { text = 'yes' }]\n";

fn mark(place: BreakpointPosition) -> CacheBreakpoint {
    CacheBreakpoint {
        place,
        ttl: Ttl::FiveMinutes,
    }
}

/// A conversation that grows: each turn reads what the one before wrote, and says why if it cannot.
#[tokio::test]
async fn a_growing_conversation_reads_its_own_prefix() {
    let clock = TestClock::default();
    let server = scripted::play_on(&clock, SCRIPT).unwrap();
    let model = scripted::anthropic(&server.url(), port(&clock), policy()).unwrap();
    let preamble = model.preamble(&preamble(
        &"A long system prompt. ".repeat(200),
        &["Read", "Write"],
    ));
    let mut entries: Vec<Encoded> = Vec::new();
    let mut previous: Option<(String, Usage)> = None;
    for turn in 0..5_usize {
        entries.push(model.entry(&Message::user(format!("{turn}: {}", "words ".repeat(300)))));
        let marks = [
            mark(BreakpointPosition::Preamble),
            mark(BreakpointPosition::Entry(entries.len() - 1)),
        ];
        let body = model.body(&Request {
            preamble: &preamble,
            loaded: &[],
            entries: &entries,
            marks: &marks,
            max_tokens: 1024,
            previous: previous.as_ref().map(|(id, _)| id.as_str()),
        });
        let reply = call(&model, &clock, body).await.result.unwrap();
        let usage = reply.usage;
        match &previous {
            None => assert_eq!((usage.cache_read, usage.input), (0, 0)),
            Some((_, before)) => {
                assert_eq!(
                    usage.cache_read,
                    before.prompt(),
                    "turn {turn}: all of the last prompt is read"
                );
                assert_eq!((usage.input, reply.cache_miss), (0, None), "turn {turn}");
            }
        }
        assert!(usage.cache_write_5m > 0 && usage.cache_write_1h == 0);
        entries.push(model.entry(&Message::assistant(reply.content)));
        previous = Some((reply.id, usage));
    }
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.status == 200),
        "thinking went back unchanged"
    );

    // The same conversation after its entries have expired: everything is paid for again, and said so.
    Pace::advance(&clock, Duration::from_secs(301));
    let id = previous.as_ref().map(|(id, _)| id.clone()).unwrap();
    let last = |entries: &[Encoded], preamble: &Encoded| {
        model.body(&Request {
            preamble,
            loaded: &[],
            entries,
            marks: &[
                mark(BreakpointPosition::Preamble),
                mark(BreakpointPosition::Entry(entries.len() - 1)),
            ],
            max_tokens: 1024,
            previous: Some(&id),
        })
    };
    entries.push(model.entry(&Message::user("more")));
    let reply = call(&model, &clock, last(&entries, &preamble))
        .await
        .result
        .unwrap();
    assert_eq!(
        (
            reply.usage.cache_read,
            reply.cache_miss.unwrap().reason.as_str()
        ),
        (0, "unavailable")
    );

    // A changed system prompt: named as such. Thinking is bound to the old one, so it must not come along.
    let other = model.preamble(&crate::calls::preamble(
        "Another prompt.",
        &["Read", "Write"],
    ));
    let plain = [model.entry(&Message::user("0"))];
    let miss = call(&model, &clock, last(&plain, &other))
        .await
        .result
        .unwrap()
        .cache_miss
        .unwrap();
    assert_eq!(miss.reason, "system_changed");
    assert!(miss.missed_tokens.unwrap() > 1000);
}

/// A turn costs no new connection: the stream is read to its end, also when that comes a little later.
#[tokio::test]
async fn turns_share_a_connection() {
    let clock = TestClock::default();
    let server = scripted::play(&SCRIPT.replace("reply", "tokens_per_s = 1000\nreply")).unwrap();
    let model = scripted::anthropic(&server.url(), port(&clock), policy()).unwrap();
    for turn in ["one", "two", "three"] {
        crate::calls::ask(&model, &clock, turn)
            .await
            .result
            .unwrap();
    }
    let connections: Vec<u64> = server
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [0, 0, 0]);
}

/// Marks change no other byte.
#[tokio::test]
async fn marks_are_spliced_into_bytes_that_stay() {
    let clock = TestClock::default();
    let model = scripted::anthropic("http://127.0.0.1:1", port(&clock), policy()).unwrap();
    let preamble = model.preamble(&preamble("Prompt.", &["Read"]));
    let messages = [
        Message::user("a \"quoted\" text"),
        Message::assistant(vec![
            ContentBlock::text("x"),
            ContentBlock::Thinking {
                thinking: "t".into(),
                signature: "s".into(),
            },
            ContentBlock::Opaque {
                block: posse_protocol::RawJson::parse(r#"{"type":"new"}"#).unwrap(),
            },
            ContentBlock::Thinking {
                thinking: "last".into(),
                signature: "s".into(),
            },
        ]),
        Message::user("b"),
    ];
    let entries: Vec<Encoded> = messages
        .iter()
        .map(|message| model.entry(message))
        .collect();
    let with = |marks: &[CacheBreakpoint]| {
        let request = Request {
            preamble: &preamble,
            loaded: &[],
            entries: &entries,
            marks,
            max_tokens: 9,
            previous: Some("msg_1"),
        };
        String::from_utf8(model.body(&request).concat()).unwrap()
    };
    let places = [
        BreakpointPosition::Preamble,
        BreakpointPosition::Entry(0),
        BreakpointPosition::Entry(1),
        BreakpointPosition::Entry(2),
    ];
    let marked = with(&places.map(|place| CacheBreakpoint {
        place,
        ttl: Ttl::OneHour,
    }));
    let mark = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;
    assert_eq!(marked.matches(mark).count(), 4);
    assert_eq!(marked.replace(mark, ""), with(&[]));
    assert!(
        marked.contains(&format!(r#""text":"x"{mark}}},{{"type":"thinking""#)),
        "not on thinking"
    );
    assert!(!marked.contains("last"), "no reply ends in thinking");
    serde_json::from_str::<serde_json::Value>(&marked).unwrap();
}
