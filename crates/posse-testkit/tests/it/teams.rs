//! Teams: raised, at work, interrupted, ended, and brought back.

mod control;
mod life;
mod raising;
mod tasks;

use std::sync::Arc;

use posse_protocol::{
    AgentId, Event, EventKind, ListId, Mail, MailKind, Member, MemberChange, MemberNews, MemberState,
    PermissionMode, RealmId, RunEnd, Task, Team,
};
use posse_runtime::Agent;
use posse_runtime::port::clock::SystemClock;
use posse_runtime::port::store::{MailFilter, TaskFilter};
use posse_testkit::Rig;
use posse_testkit::clock::TestClock;
use posse_testkit::rig::until_end;
use posse_testkit::scripted::play_on;
use serde_json::Value;

/// A rig with sub-agents that may do everything.
fn rig(script: &str) -> Rig {
    let mut rig = Rig::playing(script).unwrap().agents();
    rig.character.mode = PermissionMode::BypassPermissions;
    rig
}

/// The same, where replies that a rule delays come when the clock says so.
fn paced(script: &str) -> (Rig, TestClock) {
    let clock = TestClock::default();
    let server = play_on(&clock, script).unwrap();
    let mut rig = Rig::with(server, Arc::new(SystemClock::default())).unwrap().agents();
    rig.character.mode = PermissionMode::BypassPermissions;
    (rig, clock)
}

fn realm(root: AgentId) -> RealmId {
    RealmId::from(root.uuid())
}

async fn team(rig: &Rig, root: AgentId, name: &str) -> Team {
    let teams = rig.store.teams(Some(realm(root)), 100).await.unwrap();
    teams.into_iter().find(|team| team.name.as_str() == name).expect("there is such a team")
}

async fn member(rig: &Rig, root: AgentId, name: &str) -> Member {
    let teams = rig.store.teams(Some(realm(root)), 100).await.unwrap();
    let mut members = teams.into_iter().flat_map(|team| team.members);
    members.find(|member| member.name.as_str() == name).expect("there is such a member")
}

async fn tasks(rig: &Rig, root: AgentId, name: &str) -> Vec<Task> {
    let list = ListId { realm: realm(root), team: Some(name.parse().unwrap()) };
    rig.store.tasks(list, TaskFilter::default(), 10_000).await.unwrap()
}

async fn inbox(rig: &Rig, root: AgentId, of: AgentId) -> Vec<Mail> {
    rig.store.mail(realm(root), of, MailFilter::default(), 10_000).await.unwrap()
}

/// What the agents whose path contains `part` have sent, request by request.
fn sent_by(rig: &Rig, part: &str) -> Vec<Value> {
    let requests = rig.server.requests();
    let own = requests.iter().filter(|request| {
        request
            .header("x-posse-agent")
            .is_some_and(|path| if part == "/main" { path == part } else { path.contains(part) })
    });
    own.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

/// The texts of a message, block by block; those of tool results too.
fn words(message: &Value) -> Vec<String> {
    let text = |block: &Value| match block["type"].as_str().unwrap() {
        "tool_result" => block["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        _ => block["text"].as_str().unwrap_or_default().to_owned(),
    };
    match &message["content"] {
        Value::Array(blocks) => blocks.iter().map(text).collect(),
        content => vec![content.as_str().unwrap().to_owned()],
    }
}

/// The same of a request's last message, as one text.
fn last_words(body: &Value) -> String {
    words(body["messages"].as_array().unwrap().last().unwrap()).join("\n")
}

/// Everything that a request tells.
fn all_words(body: &Value) -> String {
    body["messages"].as_array().unwrap().iter().flat_map(words).collect::<Vec<_>>().join("\n")
}

/// All runs until nothing goes on; the last one's end.
async fn until_quiet(agent: &mut Agent) -> RunEnd {
    let mut last = None;
    loop {
        let event = agent.events.recv().await.expect("the agent lives");
        match event.kind {
            EventKind::Ended(end) if end.live == 0 => return *end,
            EventKind::Ended(end) => last = Some(*end),
            EventKind::Quiet => return last.expect("a run has ended"),
            _ => {}
        }
    }
}

fn member_news(event: &Event) -> Option<&MemberNews> {
    match &event.kind {
        EventKind::Member(news) => Some(news),
        _ => None,
    }
}

/// All events up to the first that fits, which is the last of them.
async fn until(agent: &mut Agent, mut fits: impl FnMut(&Event) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = agent.events.recv().await.expect("the agent lives");
        events.push(event);
        if events.last().is_some_and(&mut fits) {
            return events;
        }
    }
}

/// Waits until a member becomes idle.
async fn until_idle(agent: &mut Agent, name: &str) -> Vec<Event> {
    let idle = |event: &Event| {
        member_news(event)
            .is_some_and(|news| news.name.as_str() == name && matches!(news.what, MemberChange::Idle(_)))
    };
    until(agent, idle).await
}
