//! Values for tests.

use posse_protocol::{AgentId, Question, QuestionKind, RawJson};

/// Returns the main agent.
pub(crate) fn session() -> AgentId {
    uuid::Uuid::from_u128(1).into()
}

/// Returns a question about a call.
pub(crate) fn question(call: &str) -> Question {
    let number = call.bytes().map(u128::from).sum::<u128>();
    Question {
        id: uuid::Uuid::from_u128(number).into(),
        kind: QuestionKind::Permission,
        call: call.into(),
        tool: "Bash".into(),
        input: RawJson::parse(r#"{"command": "ls"}"#).unwrap(),
        why: "no rule allows it".into(),
        from: None,
        until_ms: None,
        suggestions: Vec::new(),
        shown: None,
    }
}
