//! Side queries: what is asked about an agent on its own prefix, and that nothing of it stays.

mod notes;
mod prefix;
mod stops;

use posse_protocol::{AgentId, Aside, Command, EventKind, Outcome, Usage};
use posse_runtime::live::handle::Agent;
use posse_runtime::session::side_query::{NoteTools, SideAnswer, SideQueryOptions};
use posse_testkit::Rig;
use posse_testkit::rig::{prompt, until_end};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What every question on the side has in it, and nothing else.
const SIDE: &str = "A question on the side";

fn options() -> SideQueryOptions {
    SideQueryOptions {
        max_tokens: 4096,
        cancel: CancellationToken::new(),
        hear: None,
    }
}

fn desk(rig: &Rig) -> NoteTools {
    let (tools, policy) = (rig.setup.tools.clone(), Arc::clone(&rig.setup.policy));
    NoteTools {
        tools,
        policy,
        spill: rig.setup.workspace.spill.clone(),
        home: None,
    }
}

/// Asks as another process would: the agent is not here.
async fn ask(rig: &Rig, agent: AgentId, question: &str) -> SideAnswer {
    rig.another()
        .unwrap()
        .ask(agent, question, options())
        .await
        .unwrap()
}

/// One run, and what its last reply used.
async fn run(agent: &mut Agent) -> Usage {
    let (events, end) = until_end(agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    let mut replies = events.iter().filter_map(|event| match &event.kind {
        EventKind::Entry(entry) => entry.reply.as_ref().map(|facts| facts.usage),
        _ => None,
    });
    replies.next_back().unwrap()
}

async fn told(agent: &mut Agent, text: &str) -> Usage {
    agent.handle.send(prompt(text)).await.unwrap();
    run(agent).await
}

/// The last request.
fn last(rig: &Rig) -> Value {
    crate::turns::bodies(rig).pop().unwrap()
}

/// The last message of a request.
fn last_message(body: &Value) -> Vec<Value> {
    body["messages"].as_array().unwrap().last().unwrap()["content"]
        .as_array()
        .unwrap()
        .clone()
}

/// The answer to a question on the side that the agent is told as a command.
async fn aside(agent: &mut Agent, question: &str) -> Aside {
    let question = question.to_owned();
    let command = Command::Aside { question };
    agent.handle.send(command).await.unwrap();
    loop {
        let event = agent.events.recv().await.unwrap();
        if let EventKind::Aside(aside) = event.kind {
            return *aside;
        }
    }
}

// proves CV-03 (part: same prefix; nothing stays; booked; no answer)
#[tokio::test]
async fn a_side_question_is_a_command_that_leaves_nothing_but_its_costs() {
    let rig = Rig::playing("[[rule]]\nreply = [{ text = \"turn {{turn}}\" }]").unwrap();
    let mut agent = rig
        .runtime()
        .unwrap()
        .start(&rig.profile, rig.setup.clone());
    let unborn = aside(&mut agent, "who are you?").await;
    assert!(
        unborn.error.is_some() && unborn.spent.is_empty(),
        "{unborn:?}"
    );
    told(&mut agent, "one").await;
    let before = rig.store.read(agent.id).await.unwrap();
    let first = last(&rig);
    let answered = aside(&mut agent, "why one?").await;
    assert_eq!(answered.answer.as_deref(), Some("turn 2"));
    let sent = last(&rig);
    let prefix = first["messages"].as_array().unwrap().len();
    let texts = |body: &Value| body["messages"][prefix - 1]["content"][0]["text"].clone();
    assert_eq!(
        (texts(&sent), &sent["system"]),
        (texts(&first), &first["system"])
    );
    let asked = serde_json::to_string(&last_message(&sent)).unwrap();
    assert!(
        asked.contains("why one?") && asked.contains(SIDE),
        "{asked}"
    );
    let [spent] = &answered.spent[..] else {
        panic!("{answered:?}")
    };
    assert!(
        spent.usage.cache_read > 0 && spent.cost.is_some(),
        "{spent:?}"
    );
    let after = rig.store.read(agent.id).await.unwrap();
    assert_eq!(after.entries.len(), before.entries.len());
    assert_ne!(after.record.charges, before.record.charges, "it is booked");
    told(&mut agent, "two").await;
    let next = last(&rig).to_string();
    assert!(!next.contains("why one?"), "{next}");
}
