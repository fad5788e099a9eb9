//! Hand-made events for the tests beside this file.

use std::path::PathBuf;

use posse_protocol::{
    AgentId, Cost, Denial, Outcome, PermissionMode, RawJson, RunEnd, Spent, StopReason, Usage,
};

use crate::session::Facts;

pub(super) fn session() -> AgentId {
    "0197f0aa-0000-7000-8000-000000000001".parse().unwrap()
}

pub(super) fn facts() -> Facts {
    Facts {
        session: session(),
        short: "0197f0aa-0000".into(),
        model: "m".into(),
        cwd: PathBuf::from("/work"),
        tools: vec!["Read".into(), "Bash".into()],
        mode: PermissionMode::Default,
        key_source: None,
        retries: 8,
    }
}

pub(super) fn end(outcome: Outcome) -> RunEnd {
    let usage =
        Usage { input: 10, cache_read: 20, cache_write_5m: 3, cache_write_1h: 4, output: 5, thinking: 0 };
    RunEnd {
        outcome,
        text: "all done".into(),
        stop: Some(StopReason::EndTurn),
        turns: 2,
        spent: vec![Spent { model: "m".into(), usage, cost: Some(Cost::from_pico_usd(500_000_000_000)) }],
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
