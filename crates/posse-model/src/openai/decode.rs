//! Reads messages of Chat Completions.

use posse_protocol::{ContentBlock, RawJson, ToolContent};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire_message::{WireMessage, WireRole, opaque};

/// How results of tools that failed begin: this API has no flag for them.
const FAILED: &str = "Error: ";

#[derive(Deserialize)]
struct EncodedCall {
    id: String,
    function: CalledFunction,
}

#[derive(Deserialize)]
struct CalledFunction {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct TextPart {
    r#type: String,
    text: String,
}

#[derive(Deserialize)]
struct ImagePart {
    r#type: String,
    image_url: ImageUrl,
}

#[derive(Deserialize)]
struct ImageUrl {
    url: String,
}

/// Returns true if a message with these parts has something that only this dialect has.
pub(crate) fn has_own(message: &WireMessage<'_>, parts: &[&RawValue]) -> bool {
    message.role == WireRole::Tool
        || message.tool_calls.is_some()
        || parts.iter().any(|part| image(part).is_some())
}

/// Adds what a message says.
pub(crate) fn message(
    message: &WireMessage<'_>,
    parts: &[&RawValue],
    into: &mut Vec<ContentBlock>,
) -> Result<(), serde_json::Error> {
    let text = message.content.map(RawValue::get);
    let text = text.and_then(|text| serde_json::from_str::<String>(text).ok());
    if message.role == WireRole::Tool {
        let text = text.unwrap_or_default();
        let failed = text.strip_prefix(FAILED);
        into.push(ContentBlock::ToolResult {
            tool_use_id: message.tool_call_id.clone().unwrap_or_default(),
            is_error: failed.is_some(),
            content: vec![ToolContent::text(failed.unwrap_or(&text))],
        });
        return Ok(());
    }
    into.extend(text.map(ContentBlock::text));
    for part in parts {
        let known = text_of(part).or_else(|| image(part));
        into.push(known.unwrap_or_else(|| opaque(part)));
    }
    for raw in message.tool_calls.iter().flatten() {
        let call: EncodedCall = serde_json::from_str(raw.get())?;
        into.push(ContentBlock::ToolUse {
            id: call.id,
            name: call.function.name,
            input: RawJson::parse(&call.function.arguments)?,
        });
    }
    Ok(())
}

/// Reads a text; none if the part is not one.
fn text_of(part: &RawValue) -> Option<ContentBlock> {
    let part: TextPart = serde_json::from_str(part.get()).ok()?;
    (part.r#type == "text").then_some(ContentBlock::Text { text: part.text })
}

/// Reads an image; none if the part is not one.
fn image(part: &RawValue) -> Option<ContentBlock> {
    let part: ImagePart = serde_json::from_str(part.get()).ok()?;
    let (media_type, data) = part
        .image_url
        .url
        .strip_prefix("data:")?
        .split_once(";base64,")?;
    (part.r#type == "image_url").then(|| ContentBlock::Image {
        media_type: media_type.to_owned(),
        data: data.to_owned(),
    })
}
