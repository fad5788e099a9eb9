//! Sub-agents: started, waited for or not, watched, asked about, stopped.

mod always;
mod answers;
mod asks;
mod background;
mod detach;
mod foreground;
mod forged;
mod inputs;
mod kinds;
mod places;
mod questions;
mod queue;
mod shells;
mod siblings;
mod skills;
mod states;
mod stop;
mod tasks;
mod trees;
mod types;
mod watch;
pub(crate) mod worktrees;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::SystemClock;
use posse_port::store::{AgentFilter, AgentRecord, AgentState, MailFilter, Page};
use posse_protocol::{
    AgentId, Event, EventKind, Mail, MailKind, Notification, PermissionMode, RealmId, RunChange,
    RunUpdate,
};
use posse_runtime::definition::spawning::Background;
use posse_runtime::live::handle::Agent;
use posse_testkit::Rig;
use posse_testkit::clock::TestClock;
use posse_testkit::scripted::play_on;
use serde_json::Value;

const SECOND: Duration = Duration::from_secs(1);

/// A rig with sub-agents that may do everything.
pub(crate) fn rig(script: &str) -> Rig {
    let mut rig = Rig::playing(script).unwrap().agents();
    rig.profile.mode = PermissionMode::BypassPermissions;
    rig
}

/// The same, where replies that a rule delays come when the clock says so.
pub(crate) fn paced(script: &str) -> (Rig, TestClock) {
    let clock = TestClock::default();
    let server = play_on(&clock, script).unwrap();
    let mut rig = Rig::with(server, Arc::new(SystemClock::default()))
        .unwrap()
        .agents();
    rig.profile.mode = PermissionMode::BypassPermissions;
    (rig, clock)
}

/// The same, where all time is the test's.
fn timed(script: &str) -> (Rig, TestClock) {
    let clock = TestClock::default();
    let server = play_on(&clock, script).unwrap();
    let mut rig = Rig::with(server, Arc::new(clock.clone())).unwrap().agents();
    rig.profile.mode = PermissionMode::BypassPermissions;
    (rig, clock)
}

/// Whose requests have come, by their paths, in the order of their arrival.
pub(crate) fn paths(rig: &Rig) -> Vec<String> {
    let path =
        |request: &posse_scripted::Recorded| request.header("x-posse-agent").unwrap().to_owned();
    rig.server.requests().iter().map(path).collect()
}

/// What the agent with this path has sent.
pub(crate) fn sent_by(rig: &Rig, path: &str) -> Vec<Value> {
    let requests = rig.server.requests();
    let own = requests
        .iter()
        .filter(|request| request.header("x-posse-agent") == Some(path));
    own.map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect()
}

/// The text of all tool results and words in the last message of a request.
pub(crate) fn last_words(body: &Value) -> String {
    words(body["messages"].as_array().unwrap().last().unwrap()).join("\n")
}

/// The texts of a message, block by block; those of tool results too.
pub(crate) fn words(message: &Value) -> Vec<String> {
    let text = |block: &Value| match block["type"].as_str().unwrap() {
        "tool_result" => block["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        _ => block["text"].as_str().unwrap_or_default().to_owned(),
    };
    match &message["content"] {
        Value::Array(blocks) => blocks.iter().map(text).collect(),
        content => vec![content.as_str().unwrap().to_owned()],
    }
}

/// The names of the tools that a request offers.
pub(crate) fn offered(body: &Value) -> Vec<&str> {
    body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// What an event tells of a run.
fn news(event: &Event) -> Option<&RunUpdate> {
    match &event.kind {
        EventKind::Run(news) => Some(news),
        _ => None,
    }
}

/// How a run has ended.
fn over(event: &Event) -> Option<&Notification> {
    match &news(event)?.what {
        RunChange::Ended(end) => Some(end),
        _ => None,
    }
}

/// All events up to the first that fits, which is the last of them.
pub(crate) async fn until(agent: &mut Agent, mut fits: impl FnMut(&Event) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = agent.events.recv().await.expect("the agent lives");
        events.push(event);
        if fits(&events[events.len() - 1]) {
            return events;
        }
    }
}

/// Waits for the end of the run of a task that is described so.
async fn until_over(agent: &mut Agent, description: &str) -> (Vec<Event>, Notification) {
    let is_it = |event: &Event| over(event).is_some_and(|end| end.description == description);
    let events = until(agent, is_it).await;
    let end = over(&events[events.len() - 1]).unwrap().clone();
    (events, end)
}

/// Waits until so many more runs have started.
async fn until_started(agent: &mut Agent, count: usize) -> Vec<RunUpdate> {
    let mut started = Vec::new();
    while started.len() < count {
        let event = agent.events.recv().await.expect("the agent lives");
        let begins = |news: &&RunUpdate| matches!(news.what, RunChange::Started { .. });
        started.extend(news(&event).filter(begins).cloned());
    }
    started
}

/// All sub-agents of a session, by age.
async fn rows(rig: &Rig, root: AgentId) -> Vec<AgentRecord> {
    let realm = Some(RealmId::from(root.uuid()));
    let mut found = rig
        .store
        .agents(
            AgentFilter {
                realm,
                ..AgentFilter::default()
            },
            Page::first(10_000),
        )
        .await
        .unwrap();
    found.retain(|session| session.origin.is_some());
    found.sort_by_key(|session| session.agent);
    found
}

/// The one sub-agent with this description.
async fn row(rig: &Rig, root: AgentId, description: &str) -> AgentRecord {
    let is_it = |row: &AgentRecord| row.origin.as_ref().unwrap().description == description;
    rows(rig, root).await.into_iter().find(is_it).unwrap()
}

/// Waits until the sub-agent with this description is in this state.
async fn until_state(
    rig: &Rig,
    root: AgentId,
    description: &str,
    state: AgentState,
) -> AgentRecord {
    loop {
        let all = rows(rig, root).await;
        let is_it = |row: &&AgentRecord| {
            row.origin.as_ref().unwrap().description == description && row.state == state
        };
        if let Some(found) = all.iter().find(is_it) {
            return found.clone();
        }
        tokio::task::yield_now().await;
    }
}

/// All mail that an agent ever got.
async fn inbox(rig: &Rig, root: AgentId, agent: AgentId) -> Vec<Mail> {
    rig.store
        .mail(
            RealmId::from(root.uuid()),
            agent,
            MailFilter::default(),
            Page::first(1000),
        )
        .await
        .unwrap()
}

/// The ends that an agent was told of by mail, in their order.
async fn told_ends(rig: &Rig, root: AgentId, agent: AgentId) -> Vec<Notification> {
    let mail = inbox(rig, root, agent).await;
    let ends = mail
        .iter()
        .filter(|mail| mail.kind == MailKind::Notification);
    ends.map(|mail| serde_json::from_str(&mail.body).unwrap())
        .collect()
}

/// How often a text stands in the messages of a request.
fn count(body: &Value, text: &str) -> usize {
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .flat_map(words)
        .map(|words| words.matches(text).count())
        .sum()
}

/// A pipe in the working directory: whoever opens it waits for the other side.
fn pipe(rig: &Rig, name: &str) -> PathBuf {
    let path = rig.work().join(name);
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    path
}

/// Waits until somebody has written into a pipe.
async fn ready(path: PathBuf) {
    tokio::task::spawn_blocking(move || std::fs::read(path))
        .await
        .unwrap()
        .unwrap();
}

/// Lets whoever reads from a pipe go on.
async fn release(path: PathBuf) {
    tokio::task::spawn_blocking(move || std::fs::write(path, "\n"))
        .await
        .unwrap()
        .unwrap();
}

/// When the agent has seen what it was told before.
async fn heard(agent: &mut Agent) {
    let mode = PermissionMode::BypassPermissions;
    agent
        .handle
        .send(posse_protocol::Command::SetMode(mode))
        .await
        .unwrap();
    until(agent, |event| matches!(event.kind, EventKind::Mode(_))).await;
}

fn in_background(rig: &mut Rig, background: Background) {
    rig.setup.spawning.background = background;
}
