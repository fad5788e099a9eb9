//! `posse cache`.

use std::process::Command;

use posse_port::model::Encoded;
use posse_port::store::{
    AgentState, Birth, CallKey, Epoch, NewEntry, Origin, Segment, StateChange, Step, Store,
    checksum,
};
use posse_protocol::{
    AgentId, EntryKind, Missed, PermissionMode, RealmId, ReplyFacts, StopReason, Usage,
};
use posse_store::Sqlite;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::binary::{Project, stdout};
use crate::cost::{TREE, bill, session};
use crate::team::{lines, refused, succeed};

const MINUTE: i64 = 60_000;
const NOON: i64 = 1_763_208_000_000;
const USAGE: Usage = Usage {
    input: 0,
    cache_read: 7,
    cache_write_5m: 2,
    cache_write_1h: 1,
    output: 1,
    thinking: 0,
};

/// An agent in a store.
#[derive(Clone, Copy)]
struct Lived {
    agent: AgentId,
    realm: RealmId,
}

/// An entry: when it was made, in minutes after noon; what it is; its head; its bytes; what its request missed.
type Said<'a> = (
    i64,
    EntryKind,
    Option<&'a str>,
    String,
    Option<(u64, &'a str)>,
);

fn text(role: &str, text: &str) -> String {
    json!({"role": role, "content": [{"type": "text", "text": text}]}).to_string()
}

fn prompt<'a>(minute: i64, words: &str) -> Said<'a> {
    (minute, EntryKind::Prompt, None, text("user", words), None)
}

fn reply<'a>(minute: i64, words: &str, missed: Option<(u64, &'a str)>) -> Said<'a> {
    (
        minute,
        EntryKind::Reply,
        None,
        text("assistant", words),
        missed,
    )
}

fn preamble(tools: &[&str]) -> String {
    let tools = tools
        .iter()
        .map(|name| json!({"name": name, "description": "d", "input_schema": {}}));
    let list = json!({"tools": tools.collect::<Vec<_>>()}).to_string();
    format!(
        r#""model":"m",{},"system":[{{"type":"text","text":"who"}}]"#,
        &list[1..list.len() - 1]
    )
}

fn encoded(text: &str) -> Encoded {
    Encoded {
        bytes: text.to_owned().into(),
        mark_at: None,
    }
}

/// Puts an agent into the store as its process leaves it. A sub-agent was started by the second entry of its
/// parent; if it has that much of its history, it is a fork.
fn live(
    project: &Project,
    parent: Option<(Lived, u64)>,
    preamble: &str,
    said: &[Said<'_>],
) -> Lived {
    let id = Uuid::now_v7();
    let realm = parent.map_or(RealmId::from(id), |(parent, _)| parent.realm);
    let agent = AgentId::within(realm, id);
    let segment = |(parent, to): (Lived, u64)| {
        (to > 0).then_some(Segment {
            agent: parent.agent,
            from: 0,
            to,
        })
    };
    let segments: Vec<Segment> = parent.and_then(segment).into_iter().collect();
    let origin = parent.map(|(parent, _)| Origin {
        parent: parent.agent,
        call: CallKey { seq: 1, ordinal: 0 },
        call_id: "call".into(),
        agent_type: if segments.is_empty() {
            "Explore"
        } else {
            "fork"
        }
        .into(),
        name: None,
        description: "look \u{1b}[2Jaround".into(),
        terms: String::new(),
    });
    let birth = Birth {
        path: if origin.is_some() {
            "/main/sub"
        } else {
            "/main"
        }
        .into(),
        origin: origin.map(Box::new),
        model: "m".into(),
        dialect: "anthropic".into(),
        mode: PermissionMode::Default,
        cwd: "/".into(),
        preamble: encoded(preamble),
        segments,
    };
    let state = Some(StateChange::To(AgentState::Idle));
    let mut steps = vec![Step {
        birth: Some(Box::new(birth)),
        state,
        ..Step::new(realm, agent, Epoch(1), NOON)
    }];
    let mut chain = 0;
    for (seq, (minute, kind, head, bytes, missed)) in (0..).zip(said) {
        let (head, encoded) = (head.map(encoded), encoded(bytes));
        chain = checksum(chain, seq, *kind, head.as_ref(), &encoded);
        let missed = missed.map(|(tokens, why)| Missed {
            tokens,
            why: why.into(),
        });
        let stop = Some(StopReason::EndTurn);
        let facts = ReplyFacts {
            id: "msg".into(),
            model: "m".into(),
            stop,
            usage: USAGE,
            missed,
        };
        let reply = matches!(kind, EntryKind::Reply | EntryKind::Compaction).then_some(facts);
        let entries = vec![NewEntry {
            seq,
            kind: *kind,
            head,
            loaded: None,
            encoded,
            checksum: chain,
            reply,
        }];
        steps.push(Step {
            entries,
            ..Step::new(realm, agent, Epoch(1), NOON + minute * MINUTE)
        });
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        std::fs::create_dir_all(project.file("../home")).unwrap();
        let store = Sqlite::open(&project.file("../home/posse.db")).unwrap();
        for step in steps {
            store.commit(step).await.unwrap();
        }
    });
    Lived { agent, realm }
}

fn report(project: &Project, of: Lived, more: &[&str]) -> Value {
    let id = of.agent.to_string();
    lines(project, &[&["cache", &id, "--json"], more].concat()).remove(0)
}

fn differs(report: &Value) -> Vec<(&Value, &Value)> {
    let requests = report["agents"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|agent| agent["requests"].as_array().unwrap());
    requests
        .map(|request| (&request["missed_why"], &request["differs_at"]))
        .collect()
}

// proves FK-08 (part: why)
#[test]
fn what_expired_is_told_as_that() {
    let project = Project::new("cache-expired", "");
    let said = [
        prompt(0, "go"),
        reply(1, "done", None),
        prompt(8, "more"),
        reply(8, "that too", Some((30_000, "expired"))),
        prompt(9, "and"),
        reply(9, "that", None),
    ];
    let main = live(&project, None, &preamble(&["Bash"]), &said);
    let told = report(&project, main, &[]);
    assert_eq!(
        (&told["requests"], &told["missed_tokens"]),
        (&3.into(), &30_000.into()),
        "{told}"
    );
    assert_eq!(told["missed_why"], json!({"expired": 30_000}));
    assert_eq!(told["agents"][0]["missed_why"], json!({"expired": 30_000}));
    let usage = json!({
        "input_tokens": 0, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": 1,
        "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 1},
    });
    assert_eq!(
        told["agents"][0]["requests"],
        json!([{
            "at": "2025-11-15T12:08:00.000Z", "after_ms": 7 * MINUTE, "for": "work", "usage": usage,
            "missed_tokens": 30_000, "missed_why": "expired", "differs_at": null,
        }])
    );
    assert_eq!(
        report(&project, main, &["--all"])["agents"][0]["requests"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let shown = succeed(&project, &["cache", &main.agent.to_string()]);
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "FIRST", "PARENT", "SIBLING", "READ", "WRITTEN", "MISSED", "DIFFERS", "AT", "AGENT"
        ]
    );
    let miss = [
        "2025-11-15",
        "12:08",
        "7m",
        "7",
        "30,000",
        "/main",
        "expired",
        "the",
        "same",
        "bytes",
    ];
    assert!(rows.contains(&miss.to_vec()), "{shown}");
    let last = "3 requests: 30,000 tokens had been in the cache and were not found there: they \
                expired unused\n";
    assert!(shown.ends_with(last), "{shown}");
}

// proves FK-08 (part: why)
#[test]
fn what_forks_and_others_share_is_told_and_where_they_differ() {
    let project = Project::new("cache-kin", "");
    let (ours, theirs) = (preamble(&["Bash", "Edit"]), preamble(&["Read"]));
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Agent", "input": {}}]});
    let said = [
        prompt(0, "go"),
        (1, EntryKind::Reply, None, call.to_string(), None),
    ];
    let main = live(&project, None, &ours, &said);
    let held = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1"}"#;
    let directive = |words: &str| format!(r#"{}]}}"#, json!({"type": "text", "text": words}));
    let fork = |words: &str, missed| {
        let first = (2, EntryKind::Prompt, Some(held), directive(words), None);
        live(
            &project,
            Some((main, 2)),
            &ours,
            &[first, reply(3, "done", missed)],
        )
    };
    let one = fork("look here", None);
    let two = fork("look there", None);
    let plain = |words: &str| {
        live(
            &project,
            Some((main, 0)),
            &theirs,
            &[prompt(4, words), reply(5, "done", None)],
        )
    };
    let three = plain("read this");
    let four = plain("read that");

    let told = report(&project, main, &[]);
    let agents = told["agents"].as_array().unwrap();
    let [root, first, second, third, fourth] = &agents[..] else {
        panic!("five: {told}")
    };
    assert_eq!(
        (&root["with_parent"], &root["with_sibling"]),
        (&Value::Null, &Value::Null)
    );
    for fork in [first, second] {
        let with = &fork["with_parent"];
        assert_eq!(
            with["shared_bytes"], root["first_request_bytes"],
            "all of it: {fork}"
        );
        assert_eq!(
            (&with["request_bytes"], &with["differs_at"]),
            (&with["shared_bytes"], &Value::Null)
        );
    }
    assert_eq!(first["with_sibling"], Value::Null);
    assert_eq!(second["with_sibling"]["agent_id"], one.agent.to_string());
    assert_eq!(
        second["with_sibling"]["differs_at"],
        "messages[2].content[1] (text)"
    );
    let directive = json!({"type": "text", "text": "look there"})
        .to_string()
        .len() as u64;
    let all = second["first_request_bytes"].as_u64().unwrap();
    assert_eq!(second["with_sibling"]["shared_bytes"], all - directive);
    assert_eq!(
        third["with_parent"]["differs_at"],
        "tools[0] (Read, was Bash)"
    );
    assert_eq!(third["with_parent"]["shared_bytes"], 3, "the model's name");
    assert_eq!(
        fourth["with_sibling"]["agent_id"],
        three.agent.to_string(),
        "who shares most of it"
    );
    assert_eq!(
        fourth["with_sibling"]["differs_at"],
        "messages[0].content[0] (text)"
    );

    let alone = report(&project, main, &["--agent", &two.agent.to_string()]);
    assert_eq!(
        alone["agents"],
        json!([second]),
        "looked at alone it shares as much"
    );
    assert_eq!(
        report(&project, main, &["--agent", &four.agent.to_string()])["agents"],
        json!([fourth])
    );
    let shown = succeed(&project, &["cache", &main.agent.to_string()]);
    let row = shown.lines().nth(2).unwrap();
    assert!(
        row.contains(" B     all ") && row.ends_with("    sub: look \\u{1b}[2Jaround"),
        "{shown}"
    );
    assert!(
        shown.ends_with("\n5 requests: everything that had been in the cache was found there\n"),
        "{shown}"
    );
    let shown = succeed(&project, &["cache", &main.agent.to_string(), "--all"]);
    let first = shown
        .lines()
        .find(|line| line.trim_end().ends_with("/main"))
        .unwrap_or_default();
    assert!(
        !first.is_empty() && !first.contains("the same bytes"),
        "nothing came before it: {shown}"
    );

    // So it is also further below.
    let below = |words: &str| {
        live(
            &project,
            Some((three, 0)),
            &theirs,
            &[prompt(6, words), reply(7, "done", None)],
        )
    };
    let (_, deep) = (below("and this"), below("and that"));
    let told = report(&project, main, &[]);
    let agents = told["agents"].as_array().unwrap();
    let is_it = |agent: &&Value| agent["agent_id"] == deep.agent.to_string();
    let row = agents.iter().find(is_it).unwrap();
    assert!(
        row["with_parent"].is_object() && row["with_sibling"].is_object(),
        "{row}"
    );
    assert_eq!(
        report(&project, main, &["--agent", &deep.agent.to_string()])["agents"],
        json!([row])
    );
}

// proves FK-08 (part: why)
#[test]
fn a_compaction_is_named_and_no_fault() {
    let project = Project::new("cache-compacted", "");
    let summary = (
        3,
        EntryKind::Compaction,
        None,
        text("user", "what was done"),
        None,
    );
    let said = [
        prompt(0, "go"),
        reply(1, "done", None),
        prompt(2, "more"),
        summary,
        reply(4, "that too", Some((9, "messages_changed"))),
        prompt(5, "and"),
        reply(5, "that", None),
    ];
    let main = live(&project, None, &preamble(&["Bash"]), &said);
    let same = (&Value::Null, &Value::Null);
    let compacted = (
        &json!("messages_changed"),
        &json!("messages[0] (compaction)"),
    );
    let told = report(&project, main, &["--all"]);
    assert_eq!(differs(&told), [same, same, compacted, same], "{told}");
    assert_eq!(told["agents"][0]["requests"][1]["for"], "compaction");
    assert_eq!(differs(&report(&project, main, &[])), [compacted]);
}

/// Starts an agent that has fewer tools.
const EXPLORES: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "p", subagent_type = "Explore", model = "claude-opus-5-5" } }]
[[rule]]
reply = [{ text = "done" }]
"#;

// proves FK-08 (part: why)
#[test]
fn another_set_of_tools_is_named_by_its_block() {
    let project = Project::new("cache-tools", EXPLORES);
    let main = session(&project, &["hello"]);
    let again = session(
        &project,
        &["--resume", &main, "--fork-session", "go elsewhere"],
    );
    let agents = |id: &str| lines(&project, &["cache", id, "--json"]).remove(0)["agents"].clone();
    let told = agents(&main);
    assert_eq!(told[0]["with_parent"], Value::Null, "{told}");
    let at = told[1]["with_parent"]["differs_at"]
        .as_str()
        .unwrap_or_default();
    assert!(
        at.starts_with("tools[") && at.contains(" (") && at.contains(", was "),
        "{told}"
    );
    let told = &agents(&again)[0]["with_parent"];
    assert_eq!(
        (&told["differs_at"], &told["shared_bytes"]),
        (&Value::Null, &told["request_bytes"]),
        "{told}"
    );
    assert!(told["shared_bytes"].as_u64().unwrap() > 1_000, "{told}");
}

/// Tokens read from the cache, written for five minutes and for an hour.
fn cached(usage: &Value) -> [u64; 3] {
    let written = &usage["cache_creation"];
    [
        &usage["cache_read_input_tokens"],
        &written["ephemeral_5m_input_tokens"],
        &written["ephemeral_1h_input_tokens"],
    ]
    .map(|tokens| tokens.as_u64().unwrap())
}

// proves FK-08 (part: per agent; read and written)
#[test]
fn what_is_told_is_what_the_model_billed() {
    let project = Project::new("cache-billed", TREE);
    let told = lines(&project, &["-p", "go", "--output-format", "json"]).remove(0);
    let id = told["session_id"].as_str().unwrap();
    let curl = Command::new("curl")
        .args(["-s", &format!("{}/_scripted/requests", project.url())])
        .output();
    let recorded: Vec<Value> = serde_json::from_str(&stdout(&curl.unwrap())).unwrap();
    let add = |sum: [u64; 3], more: [u64; 3]| [0, 1, 2].map(|part| sum[part] + more[part]);
    let sum = |usages: &[&Value]| usages.iter().map(|usage| cached(usage)).fold([0; 3], add);
    let in_record = |request: &Value| {
        let names = ["cache_read", "cache_write_5m", "cache_write_1h"];
        names.map(|name| request["usage"][name].as_u64().unwrap())
    };
    let billed = recorded.iter().map(in_record).fold([0; 3], add);
    assert!(billed[0] > 0 && billed[1] + billed[2] > 0, "{billed:?}");
    let names = ["read_tokens", "written_5m_tokens", "written_1h_tokens"];
    assert_eq!(
        names.map(|name| told["cache"][name].as_u64().unwrap()),
        billed,
        "{told}"
    );
    assert_eq!(cached(&bill(&project, id)["usage"]), billed);
    let report = lines(&project, &["cache", id, "--json", "--all"]).remove(0);
    let agents = report["agents"].as_array().unwrap();
    assert_eq!(
        sum(&agents
            .iter()
            .map(|agent| &agent["usage"])
            .collect::<Vec<_>>()),
        billed
    );
    let requests: Vec<&Value> = agents
        .iter()
        .flat_map(|agent| agent["requests"].as_array().unwrap())
        .map(|it| &it["usage"])
        .collect();
    assert_eq!(
        (requests.len(), sum(&requests)),
        (recorded.len(), billed),
        "each request is there once"
    );
    for agent in &agents[1..] {
        assert!(
            agent["first_request_bytes"].as_u64().unwrap() > 1_000,
            "{agent}"
        );
        assert!(agent["with_parent"]["shared_bytes"].is_u64(), "{agent}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let project = Project::new("cache-refused", "");
    refused(
        &project,
        &["cache"],
        1,
        &["no session of", "sessions list --all"],
    );
    let main = live(&project, None, &preamble(&[]), &[prompt(0, "go")]);
    let id = main.agent.to_string();
    let shown = succeed(&project, &["cache", &id]);
    assert!(
        shown.ends_with("\n0 requests: everything that had been in the cache was found there\n"),
        "{shown}"
    );
    refused(&project, &["cache", "abc"], 1, &["no session abc"]);
    refused(
        &project,
        &["cache", &id, "--agent", "abc"],
        1,
        &["the session has no agent abc", "--json"],
    );
    live(&project, Some((main, 0)), &preamble(&[]), &[]);
    refused(
        &project,
        &["cache", &id, "--agent", &id[..3]],
        1,
        &["several of its agents have ids that begin with"],
    );
    let garbled = live(&project, None, "{}", &[]).agent.to_string();
    refused(
        &project,
        &["cache", &garbled],
        1,
        &["cannot be read", &garbled],
    );
}
