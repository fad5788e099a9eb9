//! How much room a fork takes in the file.

use std::fs;

use posse_port::store::{AgentState, Charge, Epoch, NewEntry, Origin, Segment, StateChange, Step};
use posse_protocol::{AgentId, Cost, EntryKind, Purpose, ReplyFacts, StopReason, Usage};
use posse_testkit::store_contract::{birth, child, entry, headed, realm};
use uuid::Uuid;

use super::Directory;

const FORKS: u64 = 1000;

/// What a fork writes until its first call was answered: its birth with a segment and a head that all of them
/// share, that it runs, and a short reply that was paid for.
fn fork(number: u64, head: &str) -> [Step; 3] {
    let id = AgentId::within(realm(), Uuid::now_v7());
    let mut born = child(2, 1, "");
    if let Some(birth) = &mut born.birth {
        birth.path = format!("/main/fork-{number}");
        birth.model = "claude-opus-4-6-20260205".into();
        birth.cwd = "/home/somebody/projects/something".into();
        birth.segments = vec![Segment {
            agent: posse_testkit::store_contract::agent(1),
            from: 0,
            to: 2,
        }];
        birth.preamble.mark_at = Some(1);
        let terms =
            r#"{"turns":200,"background":true,"depth":1,"fork":true,"effort":"high"}"#.into();
        let description = "look at one of the files".into();
        let (call_id, agent_type) = (format!("toolu_01{:022}", number), "fork".into());
        let origin = birth.origin.take().map(|it| Origin {
            call_id,
            agent_type,
            description,
            terms,
            ..*it
        });
        birth.origin = origin.map(Box::new);
    }
    born.agent = id;
    let words = "Look at this file, and say what is wrong with it. ".repeat(6);
    born.entries = vec![headed(0, EntryKind::Prompt, head, &words)];
    born.state = Some(StateChange::To(AgentState::Running));
    born.starter = Some(posse_testkit::store_contract::agent(1));
    let step = || Step::new(realm(), id, Epoch(1), 10);
    let begun = Step {
        state: Some(StateChange::To(AgentState::Waiting)),
        ..step()
    };
    let usage = Usage {
        input: 3,
        cache_read: 250_000,
        output: 120,
        ..Usage::default()
    };
    let reply = ReplyFacts {
        id: format!("msg_01{number:022}"),
        model: "claude-opus-4-6-20260205".into(),
        stop: Some(StopReason::EndTurn),
        usage,
        missed: None,
    };
    let words = "There is nothing wrong with this file that I can see. ".repeat(6);
    let answered = Step {
        entries: vec![NewEntry {
            reply: Some(reply.clone()),
            ..entry(1, EntryKind::Reply, &words)
        }],
        charges: vec![Charge {
            model: reply.model,
            usage,
            cost: Some(Cost::from_pico_usd(1_234_567_890)),
            purpose: Purpose::Work,
            missed: 0,
        }],
        state: Some(StateChange::To(AgentState::Running)),
        ..step()
    };
    [born, begun, answered]
}

// proves FK-07 (part: on disk)
#[tokio::test]
async fn a_fork_takes_less_than_a_page() {
    let directory = Directory::new();
    let size = || fs::metadata(directory.database()).unwrap().len();
    let store = directory.open();
    let mut first = birth(1);
    let history = "x".repeat(1 << 20);
    first.entries = vec![
        entry(0, EntryKind::Prompt, &history),
        entry(1, EntryKind::Reply, "calls"),
    ];
    store.commit(first).await.unwrap();
    drop(store);
    let (store, before) = (directory.open(), size());
    let head = "{\"type\":\"tool_result\"}".repeat(4300);
    let mut commits = Vec::new();
    for step in (0..FORKS).flat_map(|number| fork(number, &head)) {
        commits.push(store.commit(step));
    }
    for commit in commits {
        commit.await.unwrap();
    }
    drop(store);
    let each = (size() - before) / FORKS;
    println!("a fork takes {each} bytes of the file");
    assert!(each <= 4096, "{each} bytes");
}
