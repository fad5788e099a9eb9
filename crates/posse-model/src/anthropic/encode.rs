//! Encoding of requests for the Messages API.
//!
//! Each part is encoded once and sent as the same bytes ever after, because the prompt cache
//! compares bytes.

use posse_port::model::{Effort, Encoded, Preamble, Thinking};
use posse_protocol::{ContentBlock, Message, Role, ToolContent, ToolSpec};
use serde_json::Value;

/// Encodes `"model":…,"tools":[…],"system":[…],"thinking":…,"output_config":…`, without braces.
pub(super) fn preamble(preamble: &Preamble) -> Encoded {
    let mut out = format!(r#""model":{}"#, json(&preamble.model));
    let mut mark_at = None;
    let tools = preamble.tools.iter().map(|tool| {
        format!(
            r#"{{"name":{},"description":{},"input_schema":{}}}"#,
            json(&tool.name),
            json(&tool.description),
            tool.input_schema.get()
        )
    });
    list(&mut out, r#","tools":["#, tools, &mut mark_at);
    let system = preamble
        .system
        .iter()
        .filter(|text| !text.trim().is_empty())
        .map(|text| text_block(text));
    // The position moves on from the tools: a mark covers everything before it, and the API
    // reads tools before the system prompt.
    list(&mut out, r#","system":["#, system, &mut mark_at);
    match preamble.thinking {
        Thinking::Default => {}
        Thinking::Adaptive => out.push_str(r#","thinking":{"type":"adaptive"}"#),
        Thinking::Budget(tokens) => {
            out.push_str(&format!(
                r#","thinking":{{"type":"enabled","budget_tokens":{tokens}}}"#
            ));
        }
        Thinking::Off => out.push_str(r#","thinking":{"type":"disabled"}"#),
    }
    if let Some(effort) = preamble.effort {
        out.push_str(&effort_field(effort));
    }
    Encoded {
        bytes: out.into(),
        mark_at,
    }
}

/// Encodes the effort, as the last field of a preamble.
pub(super) fn effort_field(effort: Effort) -> String {
    format!(r#","output_config":{{"effort":"{}"}}"#, effort.as_str())
}

/// Writes a list if it has items, and sets the position for a cache mark inside the last one.
fn list(
    out: &mut String,
    open: &str,
    items: impl Iterator<Item = String>,
    mark_at: &mut Option<usize>,
) {
    let mut separator = open;
    for item in items {
        out.push_str(separator);
        out.push_str(&item);
        *mark_at = Some(out.len() - 1);
        separator = ",";
    }
    if separator == "," {
        out.push(']');
    }
}

/// Encodes one message.
pub(crate) fn entry(message: &Message) -> Encoded {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    // The API refuses a reply that ends in thinking; such thoughts led to nothing and can be
    // dropped. Blank text after them is not sent.
    let said = message
        .content
        .iter()
        .rposition(|block| !is_thinking(block) && !is_blank(block))
        .map_or(0, |last| last + 1);
    // The API refuses an empty message, too.
    let encoded = blocks(&message.content[..said]).unwrap_or_else(|| blocks_of("(nothing)"));
    around(&format!(r#"{{"role":"{role}","content":["#), &encoded, "]}")
}

/// Encodes the beginning of a user message, which siblings share.
pub(super) fn encode_head(content: &[ContentBlock]) -> Encoded {
    let encoded = blocks(content).unwrap_or_else(|| blocks_of("(nothing)"));
    around(r#"{"role":"user","content":["#, &encoded, "")
}

/// Encodes the rest of it.
pub(super) fn encode_tail(content: &[ContentBlock]) -> Encoded {
    let encoded = blocks(content).unwrap_or_else(|| blocks_of("(nothing)"));
    around("", &encoded, "]}")
}

/// Puts text around encoded bytes, and moves their mark accordingly.
fn around(before: &str, encoded: &Encoded, after: &str) -> Encoded {
    let mut out = Vec::with_capacity(before.len() + encoded.bytes.len() + after.len());
    for part in [before.as_bytes(), &encoded.bytes, after.as_bytes()] {
        out.extend_from_slice(part);
    }
    Encoded {
        bytes: out.into(),
        mark_at: encoded.mark_at.map(|at| before.len() + at),
    }
}

/// Encodes blocks separated by commas; `None` if none of them can be sent.
fn blocks(content: &[ContentBlock]) -> Option<Encoded> {
    let (mut out, mut mark_at) = (String::new(), None);
    for block in content {
        let Some(text) = block_json(block) else {
            continue;
        };
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&text);
        if can_carry_mark(block) {
            mark_at = Some(out.len() - 1);
        }
    }
    (!out.is_empty()).then(|| Encoded {
        bytes: out.into(),
        mark_at,
    })
}

/// Encodes a text as the only block.
fn blocks_of(text: &str) -> Encoded {
    let encoded = text_block(text);
    Encoded {
        mark_at: Some(encoded.len() - 1),
        bytes: encoded.into(),
    }
}

pub(super) fn is_thinking(block: &ContentBlock) -> bool {
    matches!(
        block,
        ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. }
    )
}

fn is_blank(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { text } if text.trim().is_empty())
}

/// Returns true if the API accepts a cache mark on this block.
fn can_carry_mark(block: &ContentBlock) -> bool {
    !is_thinking(block) && !matches!(block, ContentBlock::Opaque { .. })
}

/// Returns a block's JSON; `None` for blocks that the API refuses: blank text, unsigned thinking.
fn block_json(block: &ContentBlock) -> Option<String> {
    Some(match block {
        blank if is_blank(blank) => return None,
        ContentBlock::Text { text } => text_block(text),
        ContentBlock::Image { media_type, data } => format!(
            r#"{{"type":"image","source":{{"type":"base64","media_type":{},"data":{}}}}}"#,
            json(media_type),
            json(data)
        ),
        ContentBlock::Thinking { signature, .. } if signature.is_empty() => return None,
        ContentBlock::Thinking {
            thinking,
            signature,
        } => {
            format!(
                r#"{{"type":"thinking","thinking":{},"signature":{}}}"#,
                json(thinking),
                json(signature)
            )
        }
        ContentBlock::RedactedThinking { data } => {
            format!(r#"{{"type":"redacted_thinking","data":{}}}"#, json(data))
        }
        ContentBlock::ToolUse { id, name, input } => format!(
            r#"{{"type":"tool_use","id":{},"name":{},"input":{}}}"#,
            json(id),
            json(name),
            input.get()
        ),
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            let parts: Vec<String> = content.iter().flat_map(result_parts).collect();
            // The API accepts a result without content, but not one whose text is blank.
            let content = if parts.is_empty() {
                String::new()
            } else {
                format!(r#","content":[{}]"#, parts.join(","))
            };
            let error = if *is_error { r#","is_error":true"# } else { "" };
            format!(
                r#"{{"type":"tool_result","tool_use_id":{}{content}{error}}}"#,
                json(tool_use_id)
            )
        }
        ContentBlock::Opaque { block } => block.get().to_owned(),
    })
}

/// Returns the JSON of a part of a tool's result. Of definitions it is a reference to each: the
/// request has them beside the other tools.
fn result_parts(part: &ToolContent) -> Vec<String> {
    match part {
        ToolContent::Tools { tools } => {
            let reference = |tool: &ToolSpec| {
                let name = json(&tool.name);
                format!(r#"{{"type":"tool_reference","tool_name":{name}}}"#)
            };
            tools.iter().map(reference).collect()
        }
        part => block_json(&part.clone().into()).into_iter().collect(),
    }
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, json(text))
}

fn json(text: &str) -> Value {
    Value::from(text)
}
