//! What a hook reads: facts that every event has, in the words of the ecosystem, and those of the
//! event.

use std::path::Path;

use bytes::Bytes;
use posse_protocol::{AgentId, PermissionMode};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::hook::HookEvent;

/// What every input says about the agent.
#[derive(Clone, Debug)]
pub struct HookFacts<'a> {
    /// The session.
    pub session: AgentId,
    /// The file with what was said.
    pub transcript: &'a Path,
    /// Where the agent works.
    pub directory: &'a Path,
    /// The prompt that is worked on; none before the first.
    pub prompt: Option<Uuid>,
    /// The mode.
    pub mode: PermissionMode,
    /// The effort, if it is known.
    pub effort: Option<&'static str>,
    /// Set in sub-agents only: scripts know the main agent by its absence.
    pub sub_agent: Option<SubAgentFacts<'a>>,
    /// Facts of posse's own.
    pub posse: Map<String, Value>,
}

/// What says that an agent is a sub-agent.
#[derive(Clone, Copy, Debug)]
pub struct SubAgentFacts<'a> {
    /// The agent.
    pub id: AgentId,
    /// Its type.
    pub kind: &'a str,
}

/// Returns the input of hooks of an event. `own` is what only this event has.
pub fn payload(event: HookEvent, facts: &HookFacts<'_>, own: Map<String, Value>) -> Bytes {
    let mut input = Map::new();
    let mut add = |key: &str, value: Value| {
        input.insert(key.to_owned(), value);
    };
    add("session_id", json!(facts.session));
    add("transcript_path", json!(facts.transcript));
    add("cwd", json!(facts.directory));
    if let Some(prompt) = facts.prompt {
        add("prompt_id", json!(prompt));
    }
    if event.tells_mode() {
        add("permission_mode", json!(facts.mode));
    }
    if let Some(sub_agent) = facts.sub_agent {
        add("agent_id", json!(sub_agent.id));
        add("agent_type", json!(sub_agent.kind));
    }
    if let Some(effort) = facts.effort.filter(|_| event.tells_effort()) {
        add("effort", json!({ "level": effort }));
    }
    add("hook_event_name", json!(event.as_str()));
    for (key, value) in own {
        add(&key, value);
    }
    add("posse", Value::Object(facts.posse.clone()));
    Bytes::from(Value::Object(input).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(sub_agent: Option<SubAgentFacts<'static>>) -> HookFacts<'static> {
        HookFacts {
            session: AgentId::from(Uuid::from_u128(1)),
            transcript: Path::new("/t.jsonl"),
            directory: Path::new("/w"),
            prompt: Some(Uuid::from_u128(2)),
            mode: PermissionMode::AcceptEdits,
            effort: Some("high"),
            sub_agent,
            posse: Map::from_iter([("depth".to_owned(), json!(0))]),
        }
    }

    fn read(event: HookEvent, facts: &HookFacts<'_>) -> Value {
        let own = Map::from_iter([("own".to_owned(), json!(true))]);
        serde_json::from_slice(&payload(event, facts, own)).unwrap()
    }

    // proves HK-03 (part: main agent; sub-agents; posse)
    #[test]
    fn only_sub_agents_have_an_agent_id() {
        let main = read(HookEvent::PreToolUse, &facts(None));
        let keys: Vec<&str> = main
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let expected = [
            "session_id",
            "transcript_path",
            "cwd",
            "prompt_id",
            "permission_mode",
            "effort",
            "hook_event_name",
            "own",
            "posse",
        ];
        assert_eq!(keys, expected);
        assert_eq!(
            (&main["effort"]["level"], &main["posse"]["depth"]),
            (&json!("high"), &json!(0))
        );
        let id = AgentId::from(Uuid::from_u128(3));
        let sub = read(
            HookEvent::PreToolUse,
            &facts(Some(SubAgentFacts {
                id,
                kind: "Explore",
            })),
        );
        assert_eq!(
            (&sub["agent_id"], &sub["agent_type"]),
            (&json!(id), &json!("Explore"))
        );
        let start = read(HookEvent::SessionStart, &facts(None));
        assert!(start.get("permission_mode").is_none() && start.get("effort").is_none());
    }
}
