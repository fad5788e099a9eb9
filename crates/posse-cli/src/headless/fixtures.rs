//! Hand-made events for the tests beside this file.

use std::path::PathBuf;

use posse_protocol::{
    AgentId, Cost, Denial, Event, EventKind, MemberChange, MemberUpdate, Misses, Notification,
    Outcome, PermissionMode, Question, QuestionId, QuestionKind, RawJson, RunChange, RunEnd,
    RunFacts, RunKind, RunStatus, RunUpdate, RunUsage, Spent, StopReason, Task, Team, Usage,
};
use serde_json::json;
use uuid::Uuid;

use crate::assemble::facts::SessionFacts;

pub(crate) fn session() -> AgentId {
    "0197f0aa-0000-7000-8000-000000000001".parse().unwrap()
}

pub(crate) fn facts() -> SessionFacts {
    SessionFacts {
        session: session(),
        again: "posse -p --resume 0197f0aa-0000".into(),
        model: "m".into(),
        window: Some(200_000),
        cwd: PathBuf::from("/work"),
        tools: vec!["Read".into(), "Bash".into()],
        agents: vec!["Explore".into()],
        skills: vec!["pdf".into()],
        commands: vec!["pdf".into(), "compact".into()],
        bypass_disabled: false,
        servers: Default::default(),
        mode: PermissionMode::Default,
        key_source: None,
        missing_guards: Vec::new(),
        retries: 8,
    }
}

pub(crate) fn end(outcome: Outcome) -> RunEnd {
    let usage = Usage {
        input: 10,
        cache_read: 20,
        cache_write_5m: 3,
        cache_write_1h: 4,
        output: 5,
        thinking: 0,
    };
    RunEnd {
        outcome,
        text: "all done".into(),
        value: None,
        stop: Some(StopReason::EndTurn),
        turns: 2,
        spent: vec![Spent {
            model: "m".into(),
            usage,
            cost: Some(Cost::from_pico_usd(500_000_000_000)),
        }],
        below: Vec::new(),
        misses: Misses::default(),
        live: 0,
        duration_ms: 1500,
        api_ms: 1200,
        denials: vec![Denial {
            tool: "Bash".into(),
            call: "t9".into(),
            input: RawJson::parse(r#"{"command":"rm"}"#).unwrap(),
            why: "a rule says so".into(),
        }],
    }
}

/// Something that happens to the main agent.
pub(crate) fn mine(kind: EventKind) -> Event {
    Event {
        agent: session(),
        kind,
    }
}

/// Returns the ID of the question about a call.
pub(crate) fn question_id(call: &str, from: Option<&str>) -> QuestionId {
    posse_port::store::question_id(session(), &format!("{call} {from:?}"))
}

pub(crate) fn question(call: &str, from: Option<&str>) -> Question {
    Question {
        id: question_id(call, from),
        kind: QuestionKind::Permission,
        call: call.into(),
        tool: "Bash".into(),
        input: RawJson::parse(r#"{"command": "ls"}"#).unwrap(),
        why: "no rule allows it".into(),
        from: from.map(str::to_owned),
        until_ms: None,
        suggestions: Vec::new(),
        shown: None,
        refused: None,
    }
}

/// Returns a sub-agent of the main agent.
pub(crate) fn run(number: u128) -> RunFacts {
    RunFacts {
        task: Uuid::from_u128(number),
        kind: RunKind::Agent,
        agent_type: "Explore".into(),
        name: None,
        description: "find callers".into(),
        call: format!("t{number}"),
        starter: session(),
        depth: 1,
        output_file: PathBuf::from("/spill/run.output"),
        place: None,
    }
}

pub(crate) fn started(run: RunFacts, background: bool) -> RunUpdate {
    RunUpdate {
        run,
        what: RunChange::Started {
            prompt: "Who calls step?".into(),
            background,
        },
    }
}

pub(crate) fn detached(run: RunFacts) -> RunUpdate {
    RunUpdate {
        run,
        what: RunChange::Detached,
    }
}

pub(crate) fn progress(run: RunFacts, tool_uses: u32) -> RunUpdate {
    let usage = RunUsage {
        total_tokens: 100,
        tool_uses,
        duration_ms: 50,
    };
    let what = RunChange::Progress {
        usage,
        last_tool: Some("Grep".into()),
        summary: "Grep step".into(),
    };
    RunUpdate { run, what }
}

pub(crate) fn run_ended(run: RunFacts) -> RunUpdate {
    let end = Notification {
        model: "m".into(),
        value: None,
        worktree: None,
        task: run.task,
        run: Uuid::from_u128(77),
        call: run.call.clone(),
        kind: run.kind,
        description: run.description.clone(),
        output_file: run.output_file.clone(),
        status: RunStatus::Completed,
        summary: "it found two".into(),
        result: "a.rs and b.rs".into(),
        error: None,
        usage: RunUsage {
            total_tokens: 12_345,
            tool_uses: 3,
            duration_ms: 4210,
        },
    };
    RunUpdate {
        run,
        what: RunChange::Ended(Box::new(end)),
    }
}

/// Something happened to a member of a team.
pub(crate) fn member(what: MemberChange) -> MemberUpdate {
    let (team, name) = ("parser".parse().unwrap(), "dev".parse().unwrap());
    MemberUpdate {
        team,
        name,
        color: "green".into(),
        what,
    }
}

/// A team of one.
pub(crate) fn team() -> Team {
    let member = json!({
        "agent": AgentId::from(Uuid::from_u128(1)), "name": "dev", "agent_type": "x", "model": "m", "prompt": "", "color": "blue",
        "backend": "in-process", "cwd": "/", "joined_ms": 0,
    });
    Team {
        realm: Uuid::from_u128(9).into(),
        name: "parser".parse().unwrap(),
        description: String::new(),
        lead: AgentId::from(Uuid::from_u128(1)),
        created_ms: 0,
        settings: serde_json::Map::new(),
        members: vec![serde_json::from_value(member).unwrap()],
        former: Vec::new(),
    }
}

/// A task in this state.
pub(crate) fn task(number: u64, status: &str) -> Task {
    serde_json::from_value(json!({
        "id": number, "subject": "s", "description": "", "status": status, "created_ms": 0,
        "updated_ms": 0, "version": 1, "blocked_by": [], "waits_for": [], "blocks": [], "metadata": {},
    }))
    .unwrap()
}
