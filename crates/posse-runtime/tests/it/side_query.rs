//! Side queries: what is asked about an agent on its own prefix, and that nothing of it stays.

mod notes;
mod prefix;
mod stops;

use posse_protocol::{AgentId, EventKind, Outcome, Usage};
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
