//! Encoding of requests for Chat Completions.

use posse_port::model::{Encoded, Preamble, Thinking, definitions_as_text};
use posse_protocol::{ContentBlock, Message, Role, ToolContent};
use serde_json::{Value, json};

/// Encodes `"model":…,"tools":[…],"messages":[…` up to the system message. The list stays open,
/// so that entries follow.
pub(super) fn preamble(preamble: &Preamble) -> Encoded {
    let mut out = format!(r#""model":{}"#, Value::from(preamble.model.as_str()));
    let tools: Vec<String> = preamble
        .tools
        .iter()
        .map(|tool| {
            format!(
                r#"{{"type":"function","function":{{"name":{},"description":{},"parameters":{}}}}}"#,
                Value::from(tool.name.as_str()),
                Value::from(tool.description.as_str()),
                tool.input_schema.get()
            )
        })
        .collect();
    if !tools.is_empty() {
        out.push_str(&format!(r#","tools":[{}]"#, tools.join(",")));
    }
    let effort = match (preamble.effort, preamble.thinking) {
        (_, Thinking::Off) => Some("none"),
        (effort, _) => effort.map(posse_port::model::Effort::as_str),
    };
    if let Some(effort) = effort {
        out.push_str(&effort_field(effort));
    }
    out.push_str(r#","messages":["#);
    let system: Vec<&str> = preamble
        .system
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    if !system.is_empty() {
        out.push_str(&json!({"role": "system", "content": system.join("\n\n")}).to_string());
    }
    Encoded {
        bytes: out.into(),
        mark_at: None,
    }
}

/// Encodes the effort, as a field before the messages.
pub(super) fn effort_field(effort: &str) -> String {
    format!(r#","reasoning_effort":"{effort}""#)
}

/// Encodes one message. A user message with tool results becomes several, results first.
pub(crate) fn entry(message: &Message) -> Encoded {
    match message.role {
        Role::Assistant => Encoded {
            bytes: assistant(&message.content).to_string().into(),
            mark_at: None,
        },
        Role::User => encode_tail(&message.content),
    }
}

/// Encodes the tool results that a user message begins with.
pub(super) fn encode_head(content: &[ContentBlock]) -> Encoded {
    encode_tail(content)
}

/// Encodes the text after them.
pub(super) fn encode_tail(content: &[ContentBlock]) -> Encoded {
    let encoded: Vec<String> = user(content).iter().map(Value::to_string).collect();
    Encoded {
        bytes: encoded.join(",").into(),
        mark_at: None,
    }
}

/// Encodes a reply.
fn assistant(content: &[ContentBlock]) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in content {
        match block {
            ContentBlock::Text { text: more } => text.push_str(more),
            ContentBlock::ToolUse { id, name, input } => calls.push(json!({
                "id": id, "type": "function", "function": {"name": name, "arguments": input.get()},
            })),
            // This API has no place for thinking or for blocks of another provider.
            _ => {}
        }
    }
    if calls.is_empty() {
        let text = if text.is_empty() { "(nothing)" } else { &text };
        return json!({"role": "assistant", "content": text});
    }
    let content = if text.is_empty() {
        Value::Null
    } else {
        Value::from(text)
    };
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}

/// Encodes a user message.
fn user(content: &[ContentBlock]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut parts = Vec::new();
    for block in content {
        match block {
            ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => {
                // This API has no flag for errors, but the model must know.
                let mut text = String::from(if *is_error { "Error: " } else { "" });
                for block in content {
                    match block {
                        ToolContent::Text { text: more } => text.push_str(more),
                        // This API has no definitions in mid-conversation.
                        ToolContent::Tools { tools } => {
                            if !text.is_empty() {
                                text.push('\n');
                            }
                            text.push_str(&definitions_as_text(tools));
                        }
                        // Tool results are text here; their images follow in the user's message.
                        image => parts.extend(part(&image.clone().into())),
                    }
                }
                messages
                    .push(json!({"role": "tool", "tool_call_id": tool_use_id, "content": text}));
            }
            other => parts.extend(part(other)),
        }
    }
    if !parts.is_empty() {
        messages.push(json!({"role": "user", "content": parts}));
    } else if messages.is_empty() {
        messages.push(json!({"role": "user", "content": "(nothing)"}));
    }
    messages
}

fn part(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text } if !text.trim().is_empty() => {
            Some(json!({"type": "text", "text": text}))
        }
        ContentBlock::Image { media_type, data } => Some(json!({
            "type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")},
        })),
        _ => None,
    }
}
