//! Teams: raised, at work, interrupted, ended, and brought back.

mod control;
mod hosting;
mod life;
mod raising;
mod talk;
mod tasks;

use std::sync::Arc;

use posse_port::store::{MailFilter, Page, TaskFilter};
use posse_protocol::{
    AgentId, Event, EventKind, ListId, Mail, MailKind, Member, MemberChange, MemberState,
    MemberUpdate, PermissionMode, RealmId, RunEnd, Task, Team,
};
use posse_runtime::live::handle::Agent;
use posse_testkit::Rig;
use posse_testkit::clock::TestClock;
use posse_testkit::rig::until_end;
use posse_testkit::scripted::play_on;
use serde_json::Value;

use crate::agents::{last_words, paced, rig, until, words};

fn realm(root: AgentId) -> RealmId {
    RealmId::from(root.uuid())
}

async fn team(rig: &Rig, root: AgentId, name: &str) -> Team {
    let teams = rig
        .store
        .teams(Some(realm(root)), Page::first(100))
        .await
        .unwrap();
    teams
        .into_iter()
        .find(|team| team.name.as_str() == name)
        .expect("there is such a team")
}

async fn member(rig: &Rig, root: AgentId, name: &str) -> Member {
    let teams = rig
        .store
        .teams(Some(realm(root)), Page::first(100))
        .await
        .unwrap();
    let mut members = teams.into_iter().flat_map(|team| team.members);
    members
        .find(|member| member.name.as_str() == name)
        .expect("there is such a member")
}

/// The list of a team.
fn list(root: AgentId, name: &str) -> ListId {
    ListId {
        realm: realm(root),
        team: Some(name.parse().unwrap()),
    }
}

async fn tasks(rig: &Rig, root: AgentId, name: &str) -> Vec<Task> {
    rig.store
        .tasks(list(root, name), TaskFilter::default(), Page::first(10_000))
        .await
        .unwrap()
}

async fn inbox(rig: &Rig, root: AgentId, of: AgentId) -> Vec<Mail> {
    rig.store
        .mail(realm(root), of, MailFilter::default(), Page::first(10_000))
        .await
        .unwrap()
}

/// What the agents whose path contains `part` have sent, request by request.
fn sent_by(rig: &Rig, part: &str) -> Vec<Value> {
    let requests = rig.server.requests();
    let own = requests.iter().filter(|request| {
        request.header("x-posse-agent").is_some_and(|path| {
            if part == "/main" {
                path == part
            } else {
                path.contains(part)
            }
        })
    });
    own.map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect()
}

/// Everything that a request tells.
pub(crate) fn all_words(body: &Value) -> String {
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(words)
        .collect::<Vec<_>>()
        .join("\n")
}

/// All runs until nothing goes on; the last one's end.
async fn until_quiet(agent: &mut Agent) -> RunEnd {
    let mut last = None;
    loop {
        let event = agent.events.recv().await.expect("the agent lives");
        match event.kind {
            EventKind::Ended(end) if end.live == 0 => return *end,
            EventKind::Ended(end) => last = Some(*end),
            EventKind::AllIdle => return last.expect("a run has ended"),
            _ => {}
        }
    }
}

fn member_news(event: &Event) -> Option<&MemberUpdate> {
    match &event.kind {
        EventKind::Member(news) => Some(news),
        _ => None,
    }
}

/// Waits until a member becomes idle.
async fn until_idle(agent: &mut Agent, name: &str) -> Vec<Event> {
    let idle = |event: &Event| {
        member_news(event).is_some_and(|news| {
            news.name.as_str() == name && matches!(news.what, MemberChange::Idle(_))
        })
    };
    until(agent, idle).await
}
