//! posse's types as JSON of the Messages API, which programs that read the output know.

use posse_protocol::{ContentBlock, Message, RawJson, ReplyFacts, Role, StopReason, ToolContent};
use serde_json::{Value, json};

use crate::present::usage::usage;

/// Returns a complete message of the user or of tools.
pub(crate) fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    json!({"role": role, "content": message.content.iter().map(block).collect::<Vec<_>>()})
}

/// Returns one block of a reply as a message. Only the last one has the stop reason.
pub(crate) fn reply_part(part: &ContentBlock, facts: &ReplyFacts, is_last: bool) -> Value {
    let stop = facts.stop.as_ref().filter(|_| is_last).map(stop_word);
    json!({
        "id": facts.id, "type": "message", "role": "assistant", "model": facts.model,
        "content": [block(part)], "stop_reason": stop, "stop_sequence": null, "usage": usage(&facts.usage),
    })
}

/// Returns a block.
pub(crate) fn block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text } => json!({"type": "text", "text": text}),
        ContentBlock::Image { media_type, data } => image(media_type, data),
        ContentBlock::Thinking {
            thinking,
            signature,
        } => {
            json!({"type": "thinking", "thinking": thinking, "signature": signature})
        }
        ContentBlock::RedactedThinking { data } => {
            json!({"type": "redacted_thinking", "data": data})
        }
        ContentBlock::ToolUse { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": value(input)})
        }
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            let content: Vec<Value> = content.iter().flat_map(answer).collect();
            json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error})
        }
        ContentBlock::Opaque { block } => value(block),
    }
}

/// Parses JSON that was kept as text. What a `Value` cannot hold, such as a huge number, stays
/// text.
pub(crate) fn value(raw: &RawJson) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| Value::from(raw.get()))
}

/// Returns the API's word for why a reply stopped.
pub(crate) fn stop_word(stop: &StopReason) -> String {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::ToolUse => "tool_use",
        StopReason::PauseTurn => "pause_turn",
        StopReason::Refusal => "refusal",
        StopReason::ContextFull => "model_context_window_exceeded",
        StopReason::Other(word) => word,
    }
    .to_owned()
}

fn answer(content: &ToolContent) -> Vec<Value> {
    match content {
        ToolContent::Text { text } => vec![json!({"type": "text", "text": text})],
        ToolContent::Image { media_type, data } => vec![image(media_type, data)],
        // As the API has it: the definitions are elsewhere in the request.
        ToolContent::Tools { tools } => tools
            .iter()
            .map(|tool| json!({"type": "tool_reference", "tool_name": tool.name}))
            .collect(),
    }
}

fn image(media_type: &str, data: &str) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
}
