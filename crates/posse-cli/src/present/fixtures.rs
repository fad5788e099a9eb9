//! Hand-made sessions for the tests of what lists them.

use std::path::PathBuf;

use bytes::Bytes;
use posse_port::model::Encoded;
use posse_port::store::{AgentRecord, AgentState, Charge, NewEntry, StoredEntry, Transcript};
use posse_protocol::{Cost, EntryKind, PermissionMode, ReplyFacts, StopReason, Usage};

pub(crate) const ID: &str = "0197f0aa-0000-7000-8000-000000000001";

pub(crate) fn session() -> AgentRecord {
    AgentRecord {
        realm: ID.parse().unwrap(),
        agent: ID.parse().unwrap(),
        origin: None,
        starter: None,
        path: "/main".into(),
        model: "m".into(),
        mode: PermissionMode::Default,
        cwd: PathBuf::from("/work"),
        state: AgentState::Idle,
        ended: None,
        holder: None,
        created_ms: 1_000,
        used_ms: 61_000,
        first_prompt: Some(Bytes::from_static(
            br#"{"role":"user","content":[{"type":"text","text":"fix \u001b[2Jit"}]}"#,
        )),
        entries: 2,
        charges: vec![Charge {
            model: "m".into(),
            usage: Usage::default(),
            cost: Some(Cost::from_pico_usd(500_000_000_000)),
            purpose: posse_protocol::Purpose::Work,
            missed: 0,
        }],
        reserved: None,
        types: None,
    }
}

pub(crate) fn transcript() -> Transcript {
    let encoded = |bytes: &'static str| Encoded {
        bytes: Bytes::from_static(bytes.as_bytes()),
        mark_at: None,
    };
    let entry = |seq, kind, bytes, reply| StoredEntry {
        agent: ID.parse().unwrap(),
        at_ms: 1_000,
        entry: NewEntry {
            seq,
            kind,
            head: None,
            loaded: None,
            encoded: encoded(bytes),
            checksum: 255,
            reply,
        },
    };
    let reply = ReplyFacts {
        id: "msg_1".into(),
        model: "m".into(),
        stop: Some(StopReason::ToolUse),
        usage: Usage::default(),
        missed: None,
    };
    Transcript {
        record: session(),
        dialect: "anthropic".into(),
        preamble: encoded(""),
        segments: Vec::new(),
        entries: vec![
            entry(
                0,
                EntryKind::Prompt,
                r#"{"role":"user","content":[{"type":"text","text":"fix \u001b[2Jit"}]}"#,
                None,
            ),
            entry(
                1,
                EntryKind::Reply,
                "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"I look.\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Read\",\"input\":{\n\"n\": 1.50}}]}",
                Some(reply),
            ),
            entry(
                2,
                EntryKind::Results,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"no\nsuch"}],"is_error":true}]}"#,
                None,
            ),
        ],
        inherited: 0,
        open_calls: Vec::new(),
    }
}
