//! Reads blocks of the Messages API.

use posse_protocol::{ContentBlock, Message, RawJson, Role, ToolContent, ToolSpec};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire_message::{WireMessage, WireRole, opaque};

/// Fields of all kinds of blocks.
#[derive(Deserialize)]
struct WireBlock<'a> {
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<RawJson>,
    tool_use_id: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
    source: Option<ImageSource>,
}

#[derive(Deserialize)]
struct ImageSource {
    media_type: String,
    data: String,
}

/// Reads a message; none if it is not one of this API.
pub(crate) fn message(bytes: &[u8]) -> Option<Message> {
    let message: WireMessage<'_> = serde_json::from_slice(bytes).ok()?;
    let role = match message.role {
        WireRole::User => Role::User,
        WireRole::Assistant => Role::Assistant,
        WireRole::Tool => return None,
    };
    let blocks: Vec<&RawValue> = serde_json::from_str(message.content?.get()).ok()?;
    let content = blocks.into_iter().map(block).collect();
    Some(Message { role, content })
}

/// Reads a block. One that is not known is kept as it is.
pub(crate) fn block(raw: &RawValue) -> ContentBlock {
    let read = serde_json::from_str(raw.get()).ok();
    read.and_then(known).unwrap_or_else(|| opaque(raw))
}

fn known(block: WireBlock<'_>) -> Option<ContentBlock> {
    Some(match block.r#type.as_str() {
        "text" => ContentBlock::Text { text: block.text? },
        "image" => {
            let ImageSource { media_type, data } = block.source?;
            ContentBlock::Image { media_type, data }
        }
        "thinking" => ContentBlock::Thinking {
            thinking: block.thinking?,
            signature: block.signature.unwrap_or_default(),
        },
        "redacted_thinking" => ContentBlock::RedactedThinking { data: block.data? },
        "tool_use" => ContentBlock::ToolUse {
            id: block.id?,
            name: block.name?,
            input: block.input?,
        },
        "tool_result" => ContentBlock::ToolResult {
            tool_use_id: block.tool_use_id?,
            content: match block.content {
                Some(content) => answer(content)?,
                None => Vec::new(),
            },
            is_error: block.is_error.unwrap_or(false),
        },
        _ => return None,
    })
}

/// Reads what a tool answered; none if it is of a kind that is not known.
fn answer(content: &RawValue) -> Option<Vec<ToolContent>> {
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let mut content: Vec<ToolContent> = Vec::with_capacity(blocks.len());
    for raw in blocks {
        if let Some(tool) = reference(raw) {
            match content.last_mut() {
                Some(ToolContent::Tools { tools }) => tools.push(tool),
                _ => content.push(ToolContent::Tools { tools: vec![tool] }),
            }
            continue;
        }
        content.push(match block(raw) {
            ContentBlock::Text { text } => ToolContent::Text { text },
            ContentBlock::Image { media_type, data } => ToolContent::Image { media_type, data },
            _ => return None,
        });
    }
    Some(content)
}

/// A reference to a definition.
#[derive(Deserialize)]
struct ToolReference {
    r#type: String,
    tool_name: String,
}

/// Reads a reference as a definition of which only the name is known; none if it is none.
fn reference(raw: &RawValue) -> Option<ToolSpec> {
    let reference: ToolReference = serde_json::from_str(raw.get()).ok()?;
    (reference.r#type == "tool_reference").then(|| ToolSpec {
        name: reference.tool_name,
        description: String::new(),
        input_schema: RawJson::empty_object(),
    })
}
