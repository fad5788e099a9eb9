//! Entries, calls and keys of the scenes.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use posse_protocol::{
    AgentId, ContentBlock, Cost, Entry, EntryKind, Message, RawJson, Role, ToolContent,
};
use serde_json::Value;

/// The name of the model.
pub(crate) const MODEL: &str = "claude-opus-5-5";

/// Returns an agent; the main agent is the first.
pub(crate) fn agent(number: u128) -> AgentId {
    uuid::Uuid::from_u128(number).into()
}

/// Returns an entry.
pub(crate) fn entry(seq: u64, kind: EntryKind, content: Vec<ContentBlock>) -> Entry {
    let role = match kind {
        EntryKind::Reply => Role::Assistant,
        _ => Role::User,
    };
    Entry {
        seq,
        kind,
        message: Arc::new(Message { role, content }),
        reply: None,
    }
}

/// Returns a call of a tool.
pub(crate) fn call(id: &str, tool: &str, input: &Value) -> ContentBlock {
    ContentBlock::ToolUse {
        id: id.into(),
        name: tool.into(),
        input: RawJson::from(input),
    }
}

/// Returns the result of a call.
pub(crate) fn result(id: &str, text: &str) -> ContentBlock {
    ContentBlock::ToolResult {
        tool_use_id: id.into(),
        content: vec![ToolContent::text(text)],
        is_error: false,
    }
}

/// Returns the keys that type a text; `\r` is Enter.
pub(crate) fn keys(text: &str) -> impl Iterator<Item = KeyEvent> {
    let code = |letter| match letter {
        '\r' => KeyCode::Enter,
        letter => KeyCode::Char(letter),
    };
    text.chars()
        .map(move |letter| KeyEvent::new(code(letter), KeyModifiers::NONE))
}

/// Returns a cost.
pub(crate) fn cents(cents: u64) -> Cost {
    Cost::from_pico_usd(cents * 10_000_000_000)
}
