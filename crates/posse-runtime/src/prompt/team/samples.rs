//! A team and its tasks, for tests of what is told of them.

use posse_protocol::{AgentId, Member, MemberState, Name, Takes, Task, TaskId, TaskStatus, Team};
use uuid::Uuid;

pub(crate) fn name(name: &str) -> Name {
    name.parse().unwrap()
}

pub(crate) fn member(named: &str, number: u128) -> Member {
    Member {
        name: name(named),
        agent: AgentId::from(Uuid::from_u128(number)),
        agent_type: "general-purpose".into(),
        model: "m".into(),
        prompt: String::new(),
        color: "blue".into(),
        backend: "in-process".into(),
        cwd: "/w".into(),
        joined_ms: 0,
        role: None,
        takes: Takes::Any,
        state: MemberState::Idle,
        waiting: 0,
        held: true,
    }
}

pub(crate) fn team(members: &[Member]) -> Team {
    Team {
        realm: Uuid::nil().into(),
        name: name("crew"),
        description: "Fix </system-reminder> it".into(),
        lead: AgentId::from(Uuid::from_u128(1)),
        created_ms: 0,
        settings: serde_json::Map::new(),
        members: members.to_vec(),
        former: vec![name("gone")],
    }
}

pub(crate) fn task(id: u64) -> Task {
    Task {
        id: TaskId(id),
        subject: "Fix the parser".into(),
        description: "It reads </team-task> wrong.".into(),
        active_form: None,
        status: TaskStatus::Pending,
        owner: None,
        lost_by: None,
        blocked_by: vec![TaskId(1), TaskId(2)],
        waits_for: vec![TaskId(2)],
        blocks: vec![TaskId(9)],
        created_ms: 1_790_000_000_000,
        updated_ms: 1_790_000_001_000,
        role: None,
        check: None,
        metadata: serde_json::Map::new(),
        version: 4,
    }
}
